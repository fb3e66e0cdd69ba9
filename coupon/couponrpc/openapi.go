package couponrpc

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/tallystick/tallystick/coupon/couponrpc/couponv1"
)

// openAPI returns the REST paths as an OpenAPI 3.1 document, made from the same
// contract as the handlers.
var openAPI = sync.OnceValue(func() []byte {
	d := document{schemas: object{"Problem": problemSchema}, paths: object{}}
	services := couponv1.File_tallystick_coupon_v1_coupon_proto.Services()
	for i := range services.Len() {
		methods := services.Get(i).Methods()
		for k := range methods.Len() {
			d.method(methods.Get(k))
		}
	}
	b, err := json.Marshal(object{
		"openapi":    "3.1.0",
		"info":       object{"title": "Tallystick coupons", "version": "1"},
		"security":   []object{{}, {"token": []string{}}},
		"paths":      d.paths,
		"components": object{"schemas": d.schemas, "securitySchemes": object{"token": object{"type": "http", "scheme": "bearer"}}},
	})
	if err != nil {
		panic(err) // it is made of maps and texts
	}
	return b
})

// serveOpenAPI answers with the document.
func serveOpenAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Write(openAPI())
}

type object map[string]any

// A document is one being made.
type document struct{ schemas, paths object }

var problemSchema = object{"type": "object", "properties": object{
	"type": textSchema, "title": textSchema, "status": object{"type": "integer"}, "detail": textSchema,
	"code": textSchema, "retryable": object{"type": "boolean"}, "trace_id": textSchema,
	"coupon_ids": list(textSchema),
	"errors":     list(object{"type": "object", "properties": object{"pointer": textSchema, "detail": textSchema}}),
}}

var textSchema = object{"type": "string"}

func list(of object) object { return object{"type": "array", "items": of} }

func reference(name string) object { return object{"$ref": "#/components/schemas/" + name} }

// inPath finds the fields in a path.
var inPath = regexp.MustCompile(`\{(\w+)\}`)

// method adds the path of a method.
func (d document) method(m protoreflect.MethodDescriptor) {
	rule, ok := proto.GetExtension(m.Options(), annotations.E_Http).(*annotations.HttpRule)
	if !ok || rule == nil {
		return
	}
	verb, path := "get", rule.GetGet()
	if path == "" {
		verb, path = "post", rule.GetPost()
	}
	operation := object{
		"operationId": strings.TrimSuffix(string(m.Parent().Name()), "Service") + "." + string(m.Name()),
		"responses": object{
			"2XX":     answer("application/json", d.message(m.Output())),
			"default": answer("application/problem+json", reference("Problem")),
		},
	}
	var fields []string
	for _, f := range inPath.FindAllStringSubmatch(path, -1) {
		fields = append(fields, f[1])
	}
	if verb == "post" {
		operation["requestBody"] = object{"content": object{"application/json": object{"schema": d.message(m.Input())}}}
	}
	operation["parameters"] = d.parameters(m.Input(), fields, verb == "get")
	at, _ := d.paths[path].(object)
	if at == nil {
		at = object{}
		d.paths[path] = at
	}
	at[verb] = operation
}

func answer(kind string, schema object) object {
	return object{"description": kind, "content": object{kind: object{"schema": schema}}}
}

// parameters returns the fields in the path and, of a read, all others as the
// query.
func (d document) parameters(m protoreflect.MessageDescriptor, inPath []string, query bool) []object {
	all := []object{}
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		name := string(f.Name())
		switch {
		case slices.Contains(inPath, name):
			all = append(all, object{"name": name, "in": "path", "required": true, "schema": d.field(f)})
		case query:
			all = append(all, object{"name": name, "in": "query", "schema": d.field(f)})
		}
	}
	return all
}

// message adds the schema of a message and returns a reference to it.
func (d document) message(m protoreflect.MessageDescriptor) object {
	switch m.FullName() {
	case "google.protobuf.Timestamp":
		return object{"type": "string", "format": "date-time"}
	case "google.protobuf.Struct":
		return object{"type": "object"}
	}
	name := string(m.Name())
	if d.schemas[name] == nil {
		properties := object{}
		d.schemas[name] = object{"type": "object", "properties": properties}
		for i := range m.Fields().Len() {
			f := m.Fields().Get(i)
			properties[string(f.Name())] = d.field(f)
		}
	}
	return reference(name)
}

// field returns the schema of a field as JSON has it: 64-bit integers are texts.
func (d document) field(f protoreflect.FieldDescriptor) object {
	var schema object
	switch f.Kind() {
	case protoreflect.MessageKind:
		schema = d.message(f.Message())
	case protoreflect.BoolKind:
		schema = object{"type": "boolean"}
	case protoreflect.Uint32Kind:
		schema = object{"type": "integer", "minimum": 0}
	case protoreflect.Int64Kind:
		schema = object{"type": "string", "format": "int64"}
	default:
		schema = textSchema
	}
	if f.IsList() {
		return list(schema)
	}
	return schema
}
