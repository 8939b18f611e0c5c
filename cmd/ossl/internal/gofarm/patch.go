package gofarm

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/format"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// The packages of a farm.
const (
	corePath = "crypto/tls/internal/core"
	osslPath = "crypto/tls/internal/ossl"
)

// A patch inserts a text behind an anchor, which must occur exactly once.
type patch struct{ anchor, text string }

// patches are the changes to crypto/tls's files: in conn.go a field, and a statement at the beginning of the
// methods of Conn that an engine takes over; in tls.go a private key that the settings name.
var patches = map[string][]patch{"conn.go": {
	{"type Conn struct {\n", "\tossl osslConn\n\n"},
	deadline("SetDeadline", true, true),
	deadline("SetReadDeadline", true, false),
	deadline("SetWriteDeadline", false, true),
	transfer("Write"),
	transfer("Read"),
	method("Close", "", "error", "osslClose", "Close()"),
	method("CloseWrite", "", "error", "osslStarted", "CloseWrite()"),
	{"func (c *Conn) HandshakeContext(ctx context.Context) error {\n",
		"\tif e, err := c.osslHandshake(ctx); e != nil {\n\t\treturn err\n\t}\n"},
	method("ConnectionState", "", "ConnectionState", "osslStarted", "ConnectionState()"),
	method("OCSPResponse", "", "[]byte", "osslStarted", "OCSPResponse()"),
	method("VerifyHostname", "host string", "error", "osslStarted", "VerifyHostname(host)"),
}, "tls.go": {
	{"func X509KeyPair(certPEMBlock, keyPEMBlock []byte) (Certificate, error) {\n",
		"\tif cert, ok, err := OSSLKeyPair(certPEMBlock); ok || err != nil {\n\t\treturn cert, err\n\t}\n"},
}}

func method(name, params, result, engine, call string) patch {
	return patch{fmt.Sprintf("func (c *Conn) %s(%s) %s {\n", name, params, result),
		fmt.Sprintf("\tif e := c.%s(); e != nil {\n\t\treturn e.%s\n\t}\n", engine, call)}
}

func transfer(name string) patch {
	return patch{fmt.Sprintf("func (c *Conn) %s(b []byte) (int, error) {\n", name),
		"\tif e, err := c.osslUse(); err != nil {\n\t\treturn 0, err\n\t} else if e != nil {\n\t\treturn e." + name + "(b)\n\t}\n"}
}

func deadline(name string, read, write bool) patch {
	return patch{fmt.Sprintf("func (c *Conn) %s(t time.Time) error {\n", name),
		fmt.Sprintf("\tif e := c.osslDeadline(t, %v, %v); e != nil {\n\t\treturn e.%s(t)\n\t}\n", read, write, name)}
}

// connMethods are the exported methods that crypto/tls's Conn has. An engine takes over those that do more than
// to return a field or to call another one. A method that isn't here would work on the empty state of
// crypto/tls.
var connMethods = []string{"Close", "CloseWrite", "ConnectionState", "Handshake", "HandshakeContext", "LocalAddr", "NetConn",
	"OCSPResponse", "Read", "RemoteAddr", "SetDeadline", "SetReadDeadline", "SetWriteDeadline", "VerifyHostname", "Write"}

// An UnknownGoError is the reason why ossl can't be the engine of a Go version.
type UnknownGoError struct{ Go, Reason string }

func (e *UnknownGoError) Error() string {
	return fmt.Sprintf("the crypto/tls of %s: %s", e.Go, e.Reason)
}

// applied returns the text of a file with the patches.
func applied(file, text string, patches []patch) (string, error) {
	for _, p := range patches {
		if n := strings.Count(text, p.anchor); n != 1 {
			return "", fmt.Errorf("%s has %d times %q, not once", file, n, strings.TrimSpace(p.anchor))
		}
		text = strings.Replace(text, p.anchor, p.anchor+p.text, 1)
	}
	return text, nil
}

// pushLinknames keeps the symbols to which crypto/tls lets other packages link under their names.
func pushLinknames(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "//go:linkname" {
			lines[i] = line + " crypto/tls." + f[1]
		}
	}
	return strings.Join(lines, "\n")
}

// A pkg is crypto/tls as it stands in a GOROOT.
type pkg struct {
	fset  *token.FileSet
	files []*ast.File // those of any platform that a build without special tags has
}

func parse(files map[string][]byte) (*pkg, error) {
	p := &pkg{fset: token.NewFileSet()}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f, err := parser.ParseFile(p.fset, name, files[name], parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		if isBuilt(f) {
			p.files = append(p.files, f)
		}
	}
	return p, nil
}

// isBuilt reports whether a file belongs to a build without GOEXPERIMENT=boringcrypto.
func isBuilt(f *ast.File) bool {
	for _, group := range f.Comments {
		for _, c := range group.List {
			if e, err := constraint.Parse(c.Text); err == nil && c.Pos() < f.Package {
				return e.Eval(func(tag string) bool { return tag != "ignore" && tag != "boringcrypto" })
			}
		}
	}
	return true
}

// methodsOfConn returns the exported methods of Conn, sorted.
func (p *pkg) methodsOfConn() []string {
	var names []string
	for _, f := range p.files {
		for _, d := range f.Decls {
			m, ok := d.(*ast.FuncDecl)
			if !ok || m.Recv == nil || !m.Name.IsExported() {
				continue
			}
			t := m.Recv.List[0].Type
			if star, ok := t.(*ast.StarExpr); ok {
				t = star.X
			}
			if id, ok := t.(*ast.Ident); ok && id.Name == "Conn" {
				names = append(names, m.Name.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// facade returns the file that is crypto/tls: its exported names, as aliases of the core's.
func (p *pkg) facade() ([]byte, error) {
	lines := map[string]string{}   // of exported names
	imports := map[string]string{} // the packages that the functions' types are from, by name
	for _, f := range p.files {
		known := map[string]string{}
		for _, i := range f.Imports {
			full, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return nil, err
			}
			name := path.Base(full)
			if i.Name != nil {
				name = i.Name.Name
			}
			known[name] = full
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil || !d.Name.IsExported() {
					continue
				}
				text, err := p.forward(d)
				if err != nil {
					return nil, err
				}
				lines[d.Name.Name] = text
				ast.Inspect(d.Type, func(n ast.Node) bool {
					if s, ok := n.(*ast.SelectorExpr); ok {
						if id, ok := s.X.(*ast.Ident); ok && known[id.Name] != "" {
							imports[id.Name] = known[id.Name]
						}
					}
					return true
				})
			case *ast.GenDecl:
				if err := declare(lines, d); err != nil {
					return nil, err
				}
			}
		}
	}
	var b bytes.Buffer
	b.WriteString("// Package tls is crypto/tls on the host's OpenSSL, made by \"ossl go\". All of its names are those of\n" +
		"// crypto/tls/internal/core, which has Go's files.\npackage tls\n\nimport (\n")
	for _, name := range slices.Sorted(maps.Keys(imports)) {
		fmt.Fprintf(&b, "\t%s %q\n", name, imports[name])
	}
	fmt.Fprintf(&b, "\tcore %q\n\t_ %q\n)\n\n", corePath, osslPath+"/hook")
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		b.WriteString(lines[name])
	}
	return format.Source(b.Bytes())
}

// declare adds the exported constants and types of a declaration.
func declare(lines map[string]string, d *ast.GenDecl) error {
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() {
				if s.TypeParams != nil {
					return fmt.Errorf("the type %s has parameters", s.Name.Name)
				}
				lines[s.Name.Name] = fmt.Sprintf("type %[1]s = core.%[1]s\n", s.Name.Name)
			}
		case *ast.ValueSpec:
			for _, n := range s.Names {
				if n.IsExported() {
					if d.Tok != token.CONST {
						return fmt.Errorf("the variable %s is exported", n.Name)
					}
					lines[n.Name] = fmt.Sprintf("const %[1]s = core.%[1]s\n", n.Name)
				}
			}
		}
	}
	return nil
}

// forward returns a function that calls the core's.
func (p *pkg) forward(d *ast.FuncDecl) (string, error) {
	if d.Type.TypeParams != nil {
		return "", fmt.Errorf("the function %s has type parameters", d.Name.Name)
	}
	var signature bytes.Buffer
	if err := format.Node(&signature, p.fset, d.Type); err != nil {
		return "", err
	}
	var args []string
	for _, param := range d.Type.Params.List {
		for _, n := range param.Names {
			arg := n.Name
			if _, ok := param.Type.(*ast.Ellipsis); ok {
				arg += "..."
			}
			args = append(args, arg)
		}
	}
	call := fmt.Sprintf("core.%s(%s)", d.Name.Name, strings.Join(args, ", "))
	if d.Type.Results != nil {
		call = "return " + call
	}
	return fmt.Sprintf("func %s%s { %s }\n", d.Name.Name, strings.TrimPrefix(signature.String(), "func"), call), nil
}
