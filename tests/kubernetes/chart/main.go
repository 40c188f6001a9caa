// Renders the Helm chart as Helm does, with the template functions that it has, and compares the
// objects with those of the kustomize base: both install the same. Debian has no Helm.
//
// usage: chart render CHART [VALUES.yaml]     prints the objects as YAML
//
//	chart compare CHART BASE             exit 1 and a line for each difference
//	chart objects FILE.yaml...           prints the objects as one list of JSON
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"gopkg.in/yaml.v3"
)

const (
	release   = "spoke"
	namespace = "spoke-system"
)

type object = map[string]interface{}

func readYaml(path string) (object, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	values := object{}
	if err := yaml.Unmarshal(text, &values); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return values, nil
}

// As Helm does: maps are merged, anything else is replaced.
func merge(base, over object) object {
	for key, value := range over {
		below, isMap := base[key].(object)
		above, alsoMap := value.(object)
		if isMap && alsoMap {
			base[key] = merge(below, above)
		} else {
			base[key] = value
		}
	}
	return base
}

func toYaml(value interface{}) (string, error) {
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if err := encoder.Encode(value); err != nil {
		return "", err
	}
	return strings.TrimSuffix(text.String(), "\n"), nil
}

// The templates' values: what Helm gives them.
func readValues(chart string, more string) (object, error) {
	values, err := readYaml(filepath.Join(chart, "values.yaml"))
	if err != nil {
		return nil, err
	}
	if more != "" {
		over, err := readYaml(more)
		if err != nil {
			return nil, err
		}
		values = merge(values, over)
	}
	about, err := readYaml(filepath.Join(chart, "Chart.yaml"))
	if err != nil {
		return nil, err
	}
	named := object{"Name": about["name"], "Version": about["version"], "AppVersion": about["appVersion"]}
	return object{
		"Values": values, "Chart": named,
		"Release": object{"Name": release, "Namespace": namespace},
	}, nil
}

func parseTemplates(chart string) (*template.Template, []string, error) {
	all := template.New("chart").Option("missingkey=error")
	functions := sprig.TxtFuncMap()
	functions["toYaml"] = toYaml
	functions["include"] = func(name string, data interface{}) (string, error) {
		var text bytes.Buffer
		err := all.ExecuteTemplate(&text, name, data)
		return text.String(), err
	}
	all.Funcs(functions)
	files, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	if err != nil {
		return nil, nil, err
	}
	names := []string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, nil, err
		}
		name := filepath.Base(file)
		if _, err := all.New(name).Parse(string(text)); err != nil {
			return nil, nil, err
		}
		names = append(names, name)
	}
	sort.Strings(names)
	return all, names, nil
}

// render returns the manifests' text; NOTES.txt is rendered too, for its mistakes.
func render(chart string, more string) (string, error) {
	values, err := readValues(chart, more)
	if err != nil {
		return "", err
	}
	all, names, err := parseTemplates(chart)
	if err != nil {
		return "", err
	}
	var manifests strings.Builder
	for _, name := range names {
		var text bytes.Buffer
		if strings.HasPrefix(name, "_") {
			continue
		}
		if err := all.ExecuteTemplate(&text, name, values); err != nil {
			return "", err
		}
		if strings.HasSuffix(name, ".yaml") {
			fmt.Fprintf(&manifests, "---\n%s\n", text.String())
		}
	}
	return manifests.String(), nil
}

func parseObjects(text io.Reader, into map[string]object) error {
	decoder := yaml.NewDecoder(text)
	for {
		one := object{}
		err := decoder.Decode(&one)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(one) == 0 {
			continue
		}
		metadata, _ := one["metadata"].(object)
		name := fmt.Sprintf("%v %v", one["kind"], metadata["name"])
		if _, twice := into[name]; twice {
			return fmt.Errorf("%s is there twice", name)
		}
		into[name] = one
	}
}

// readBase reads the base's objects, its namespace aside: Helm makes that itself.
func readBase(base string) (map[string]object, error) {
	objects := map[string]object{}
	files, err := filepath.Glob(filepath.Join(base, "*.yaml"))
	if err != nil {
		return nil, err
	}
	for _, path := range files {
		if name := filepath.Base(path); name == "kustomization.yaml" || name == "namespace.yaml" {
			continue
		}
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		err = parseObjects(file, objects)
		file.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	if len(objects) == 0 {
		return nil, fmt.Errorf("%s: no objects", base)
	}
	return objects, nil
}

// readConfigs reads what the base's generators make ConfigMaps of.
func readConfigs(base string) (map[string]object, error) {
	maps := map[string]object{}
	for name, files := range map[string][]string{
		"ConfigMap spoke-netagent-config":    {"netagent.yaml", "spoke.conflist"},
		"ConfigMap spoke-ipam-server-config": {"ipam-server.yaml"},
	} {
		data := object{}
		for _, file := range files {
			path := filepath.Join(base, "config", file)
			if file == "ipam-server.yaml" {
				path = filepath.Join(base, "..", "overlays", "static", file)
			}
			content, err := readYaml(path)
			if err != nil {
				return nil, err
			}
			data[file] = content
		}
		maps[name] = data
	}
	return maps, nil
}

// A chart needs what kustomize does by itself: the tag, and a trace of the configuration.
func normalize(node interface{}) interface{} {
	switch value := node.(type) {
	case object:
		delete(value, "spoke/config")
		for key, child := range value {
			if image, isText := child.(string); isText && key == "image" {
				value[key] = strings.SplitN(image, ":", 2)[0]
			} else {
				value[key] = normalize(child)
			}
		}
	case []interface{}:
		for i := range value {
			value[i] = normalize(value[i])
		}
	}
	return node
}

func differences(path string, chart, base interface{}) []string {
	left, isMap := chart.(object)
	right, alsoMap := base.(object)
	if !isMap || !alsoMap {
		if reflect.DeepEqual(chart, base) {
			return nil
		}
		return []string{fmt.Sprintf("%s: the chart has %v, the base %v", path, chart, base)}
	}
	keys := map[string]bool{}
	for key := range left {
		keys[key] = true
	}
	for key := range right {
		keys[key] = true
	}
	found := []string{}
	for key := range keys {
		found = append(found, differences(path+"."+key, left[key], right[key])...)
	}
	sort.Strings(found)
	return found
}

func compare(chart, base string) ([]string, error) {
	text, err := render(chart, "")
	if err != nil {
		return nil, err
	}
	rendered := map[string]object{}
	if err := parseObjects(strings.NewReader(text), rendered); err != nil {
		return nil, err
	}
	expected, err := readBase(base)
	if err != nil {
		return nil, err
	}
	configs, err := readConfigs(base)
	if err != nil {
		return nil, err
	}
	found := []string{}
	for name, data := range configs {
		config, has := rendered[name]
		delete(rendered, name)
		if !has {
			found = append(found, name+" is not in the chart")
			continue
		}
		for file, content := range data {
			texts, _ := config["data"].(object)
			parsed := object{}
			if err := yaml.Unmarshal([]byte(fmt.Sprint(texts[file])), &parsed); err != nil {
				return nil, fmt.Errorf("%s %s: %w", name, file, err)
			}
			found = append(found, differences(name+" "+file, parsed, content)...)
		}
	}
	for name := range rendered {
		if _, has := expected[name]; !has {
			found = append(found, name+" is not in the base")
		}
	}
	for name, want := range expected {
		have, has := rendered[name]
		if !has {
			found = append(found, name+" is not in the chart")
			continue
		}
		found = append(found, differences(name, normalize(have), normalize(want))...)
	}
	sort.Strings(found)
	return found, nil
}

func printObjects(files []string) error {
	objects := map[string]object{}
	for _, path := range files {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		err = parseObjects(file, objects)
		file.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	list := []object{}
	for _, one := range objects {
		list = append(list, one)
	}
	return json.NewEncoder(os.Stdout).Encode(list)
}

func run(arguments []string) (int, error) {
	switch {
	case len(arguments) >= 2 && arguments[0] == "objects":
		return 0, printObjects(arguments[1:])
	case len(arguments) >= 2 && len(arguments) <= 3 && arguments[0] == "render":
		text, err := render(arguments[1], strings.Join(arguments[2:], ""))
		fmt.Print(text)
		return 0, err
	case len(arguments) == 3 && arguments[0] == "compare":
		found, err := compare(arguments[1], arguments[2])
		for _, line := range found {
			fmt.Println(line)
		}
		if len(found) > 0 {
			return 1, err
		}
		return 0, err
	}
	return 2, errors.New("usage: chart render CHART [VALUES.yaml] | chart compare CHART BASE | chart objects FILE.yaml...")
}

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		if code == 0 {
			code = 1
		}
	}
	os.Exit(code)
}
