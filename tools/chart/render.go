// Renders a chart as Helm does: text/template with Sprig's functions and Helm's own few.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"sigs.k8s.io/yaml"
)

type Values = map[string]interface{}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func read(path string) Values {
	text, err := os.ReadFile(path)
	must(err)
	values := Values{}
	must(yaml.Unmarshal(text, &values))
	return values
}

// Maps are merged, all else is replaced.
func merge(into, from Values) Values {
	for key, value := range from {
		old, isOld := into[key].(Values)
		if more, isMap := value.(Values); isOld && isMap {
			value = merge(old, more)
		}
		into[key] = value
	}
	return into
}

// render CHART RELEASE NAMESPACE [VALUES...]
func main() {
	chart, release, namespace := os.Args[1], os.Args[2], os.Args[3]
	values := read(filepath.Join(chart, "values.yaml"))
	for _, path := range os.Args[4:] {
		values = merge(values, read(path))
	}
	about := Values{}
	for key, value := range read(filepath.Join(chart, "Chart.yaml")) {
		about[strings.ToUpper(key[:1])+key[1:]] = value
	}
	all := template.New(chart).Option("missingkey=zero").Funcs(sprig.TxtFuncMap())
	all.Funcs(template.FuncMap{
		"toYaml": func(value interface{}) (string, error) {
			text, err := yaml.Marshal(value)
			return strings.TrimSuffix(string(text), "\n"), err
		},
		"include": func(name string, data interface{}) (string, error) {
			out := &strings.Builder{}
			err := all.ExecuteTemplate(out, name, data)
			return out.String(), err
		},
	})
	files, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	must(err)
	_, err = all.ParseFiles(files...)
	must(err)
	for _, path := range files {
		name := filepath.Base(path)
		if filepath.Ext(name) != ".yaml" {
			continue
		}
		out := &strings.Builder{}
		must(all.ExecuteTemplate(out, name, Values{
			"Values":  values,
			"Chart":   about,
			"Release": Values{"Name": release, "Namespace": namespace},
		}))
		if text := strings.TrimSpace(out.String()); text != "" {
			fmt.Printf("---\n# Source: castellan/templates/%s\n%s\n", name, text)
		}
	}
}
