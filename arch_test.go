package tallystick_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/tallystick/tallystick/"

// domains lists, for each domain, which packages of this module it may import.
// Its adapters, the packages below it, may import the same, the domain itself
// and what is internal. Only cmd, bench and examples may import adapters.
var domains = map[string][]string{
	"sequence": {"internal/refill"},
	"migrate":  {"internal/refill", "internal/spelling"},
	"shard":    {"internal/refill"},
	"rollout":  {"internal/refill"},
	"coupon":   {"internal/refill", "sequence", "migrate", "shard"},
}

// domainModules are the modules of others that domains may need, directly or
// not: an application that embeds a client compiles no driver and no SDK.
var domainModules = []string{
	"github.com/cenkalti/backoff/v5",
	"go.yaml.in/yaml/v3", // plans
	"golang.org/x/sync",
	"golang.org/x/time/rate",
}

// needs limits single packages likewise.
var needs = map[string][]string{
	"internal/refill": domainModules,
	// What an application links that asks a server for values.
	"sequence/seqrpc": append([]string{"connectrpc.com/connect", "google.golang.org/protobuf"}, domainModules...),
}

// A pkg is what go list tells about a package.
type pkg struct {
	ImportPath, Doc string
	GoFiles         []string
	Imports         []string
	Deps            []string // transitive
}

func TestPackagesImportWhatTheyMayAndSayWhatTheyAre(t *testing.T) {
	for _, p := range listPackages(t) {
		for _, v := range violations(p) {
			t.Error(v)
		}
	}
}

func TestOnlyWireNamesAdapters(t *testing.T) {
	files, err := filepath.Glob("cmd/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		var imports []string
		for _, spec := range parsed.Imports {
			imp, _ := strconv.Unquote(spec.Path.Value)
			imports = append(imports, imp)
		}
		for _, v := range commandViolations(file, imports) {
			t.Error(v)
		}
	}
}

// violations returns what is wrong with p, a line each.
func violations(p pkg) []string {
	name, ours := strings.CutPrefix(p.ImportPath, module)
	if !ours { // the module's root has tests only
		return nil
	}
	var wrong []string
	if p.Doc == "" && !generated(p.GoFiles) {
		wrong = append(wrong, name+": no package comment")
	}
	for _, imp := range p.Imports {
		if own, ok := strings.CutPrefix(imp, module); ok && !mayImport(name, own) {
			wrong = append(wrong, fmt.Sprintf("%s must not import %s", name, own))
		}
	}
	if limit, limited := limitOf(name); limited {
		for _, dep := range p.Deps {
			if foreign(dep) && !within(dep, limit) {
				wrong = append(wrong, fmt.Sprintf("%s must not need %s", name, dep))
			}
		}
	}
	return wrong
}

// commandViolations returns which imports a file of cmd must not have.
func commandViolations(file string, imports []string) []string {
	if path.Base(file) == "wire.go" || strings.HasSuffix(file, "_test.go") {
		return nil
	}
	var wrong []string
	for _, imp := range imports {
		own, ok := strings.CutPrefix(imp, module)
		root, _, below := strings.Cut(own, "/")
		if _, domain := domains[root]; ok && domain && below {
			wrong = append(wrong, fmt.Sprintf("%s must not import %s: only wire.go names adapters", file, own))
		}
	}
	return wrong
}

// limitOf returns which modules of others a package may need, and false where
// there is no limit.
func limitOf(name string) ([]string, bool) {
	if _, domain := domains[name]; domain {
		return domainModules, true
	}
	limit, limited := needs[name]
	return limit, limited
}

// mayImport reports whether the package name may import imp, both without the
// module.
func mayImport(name, imp string) bool {
	root, _, _ := strings.Cut(name, "/")
	if root == "cmd" || root == "bench" || root == "examples" {
		return true
	}
	if imp == "internal/realtest" { // starts servers: for tests, which go list does not count
		return false
	}
	if name == root {
		return slices.Contains(domains[root], imp)
	}
	if within(imp, []string{name}) { // its own parts
		return true
	}
	if root == "internal" { // of these only the console sees domains
		_, domain := domains[imp]
		return name == "internal/console" && domain || imp == "internal/refill"
	}
	return imp == root || slices.Contains(domains[root], imp) ||
		strings.HasPrefix(imp, root+"/internal/") || // what a domain's adapters share
		strings.HasPrefix(imp, "internal/") && imp != "internal/console"
}

// within reports whether dep is, or lies below, one of paths.
func within(dep string, paths []string) bool {
	return slices.ContainsFunc(paths, func(p string) bool {
		return dep == p || strings.HasPrefix(dep, p+"/")
	})
}

// foreign reports whether dep is of another module; the standard library has
// no dot in the first part of its paths.
func foreign(dep string) bool {
	host, _, _ := strings.Cut(dep, "/")
	return strings.Contains(host, ".") && !strings.HasPrefix(dep, module)
}

// generated reports whether a generator wrote all files: it writes no package
// comment.
func generated(files []string) bool {
	return !slices.ContainsFunc(files, func(f string) bool {
		return !strings.HasSuffix(f, ".pb.go") && !strings.HasSuffix(f, ".connect.go")
	})
}

func TestViolationsFindsPlanted(t *testing.T) {
	const doc = "Package x is there."
	for name, c := range map[string]struct {
		p    pkg
		want string // "": none
	}{
		"package without comment":         {pkg{ImportPath: "shard", GoFiles: []string{"a.go"}}, "shard: no package comment"},
		"generated package":               {pkg{ImportPath: "sequence/seqrpc/sequencev1", GoFiles: []string{"a.pb.go", "b.connect.go"}}, ""},
		"standard library":                {pkg{ImportPath: "sequence", Doc: doc, Imports: []string{"net/http"}, Deps: []string{"net/http", "vendor/golang.org/x/net"}}, ""},
		"domain, refill":                  {pkg{ImportPath: "sequence", Doc: doc, Imports: []string{module + "internal/refill"}}, ""},
		"domain, listed module":           {pkg{ImportPath: "sequence", Doc: doc, Deps: []string{"golang.org/x/sync/errgroup"}}, ""},
		"domain, SDK somewhere below":     {pkg{ImportPath: "sequence", Doc: doc, Deps: []string{"github.com/aws/aws-sdk-go-v2/aws"}}, "sequence must not need github.com/aws/aws-sdk-go-v2/aws"},
		"domain, name like a listed one":  {pkg{ImportPath: "sequence", Doc: doc, Deps: []string{"golang.org/x/synctool"}}, "sequence must not need golang.org/x/synctool"},
		"domain, its adapter":             {pkg{ImportPath: "sequence", Doc: doc, Imports: []string{module + "sequence/seqbolt"}}, "sequence must not import sequence/seqbolt"},
		"domain, another domain":          {pkg{ImportPath: "sequence", Doc: doc, Imports: []string{module + "shard"}}, "sequence must not import shard"},
		"domain, console":                 {pkg{ImportPath: "migrate", Doc: doc, Imports: []string{module + "internal/console"}}, "migrate must not import internal/console"},
		"coupon, the three it stands on":  {pkg{ImportPath: "coupon", Doc: doc, Imports: []string{module + "sequence", module + "migrate", module + "shard"}}, ""},
		"coupon, adapter of another":      {pkg{ImportPath: "coupon", Doc: doc, Imports: []string{module + "sequence/seqrpc"}}, "coupon must not import sequence/seqrpc"},
		"adapter, its domain and SDK":     {pkg{ImportPath: "sequence/seqdynamo", Doc: doc, Imports: []string{module + "sequence"}, Deps: []string{"github.com/aws/aws-sdk-go-v2/aws"}}, ""},
		"adapter, its own generated code": {pkg{ImportPath: "sequence/seqrpc", Doc: doc, Imports: []string{module + "sequence/seqrpc/sequencev1"}}, ""},
		"adapter, another adapter":        {pkg{ImportPath: "sequence/seqdynamo", Doc: doc, Imports: []string{module + "sequence/seqbolt"}}, "sequence/seqdynamo must not import sequence/seqbolt"},
		"adapter, another domain":         {pkg{ImportPath: "sequence/seqdynamo", Doc: doc, Imports: []string{module + "migrate"}}, "sequence/seqdynamo must not import migrate"},
		"adapter, test servers":           {pkg{ImportPath: "sequence/seqtest", Doc: doc, Imports: []string{module + "internal/realtest"}}, "sequence/seqtest must not import internal/realtest"},
		"wire, its two modules":           {pkg{ImportPath: "sequence/seqrpc", Doc: doc, Deps: []string{"connectrpc.com/connect", "google.golang.org/protobuf/proto"}}, ""},
		"wire, one more":                  {pkg{ImportPath: "sequence/seqrpc", Doc: doc, Deps: []string{"google.golang.org/grpc"}}, "sequence/seqrpc must not need google.golang.org/grpc"},
		"console, a domain":               {pkg{ImportPath: "internal/console", Doc: doc, Imports: []string{module + "coupon"}}, ""},
		"console, an adapter":             {pkg{ImportPath: "internal/console", Doc: doc, Imports: []string{module + "coupon/couponsql"}}, "internal/console must not import coupon/couponsql"},
		"other internal, a domain":        {pkg{ImportPath: "internal/refill", Doc: doc, Imports: []string{module + "sequence"}}, "internal/refill must not import sequence"},
		"command, anything":               {pkg{ImportPath: "cmd/tallystick", Doc: doc, Imports: []string{module + "sequence/seqbolt", module + "internal/console"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.p.ImportPath = module + c.p.ImportPath
			if got := strings.Join(violations(c.p), "; "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestCommandViolationsFindsPlanted(t *testing.T) {
	imports := []string{module + "sequence", module + "internal/console", module + "sequence/seqbolt"}
	for file, want := range map[string]int{
		"cmd/tallystick/serve.go":      1,
		"cmd/tallystick/wire.go":       0,
		"cmd/tallystick/serve_test.go": 0,
	} {
		if got := commandViolations(file, imports); len(got) != want {
			t.Errorf("%s: got %q, want %d", file, got, want)
		}
	}
}

func listPackages(t *testing.T) []pkg {
	t.Helper()
	statSources(t)
	cmd := exec.Command("go", "list", "-json=ImportPath,Doc,GoFiles,Imports,Deps", "./...")
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var pkgs []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
}

// statSources stats every Go file, so that the cache of test results, which
// cannot see what go list reads, runs the test again when one has changed.
func statSources(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(".", func(file string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(file) == ".go" {
			_, err = os.Stat(file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
