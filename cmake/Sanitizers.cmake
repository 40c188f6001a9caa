# SPOKE_SANITIZE holds what -fsanitize= takes; the presets dev and tsan set it.
if(SPOKE_SANITIZE)
  add_compile_options(-fsanitize=${SPOKE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${SPOKE_SANITIZE})
endif()

# What a test says itself, and what GoogleTest makes of it, needs no check of each pointer: those are a
# quarter of the code that comes out of a test, and a pointer to nothing ends it all the same. The price: of
# an inline function that test and code both call, the linker may keep the test's copy, without these checks.
function(sanitize_test target)
  if(SPOKE_SANITIZE MATCHES "undefined")
    target_compile_options(${target} PRIVATE -fno-sanitize=null,alignment,vptr,object-size)
  endif()
endfunction()
