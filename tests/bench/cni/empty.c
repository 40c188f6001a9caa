// The program costs what any exec costs at least.
int main(void) { return 0; }
