package policy

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// At returns the policy as it is on the day of t: without the values whose Until has passed. Settings
// and limits that have passed leave the choice open.
func (p *Policy) At(t time.Time) *Policy {
	p = p.clone()
	for _, list := range []*[]Value{&p.Versions, &p.Suites13, &p.Suites12, &p.Groups, &p.Signatures, &p.Chain.Hashes} {
		*list = slices.DeleteFunc(*list, func(v Value) bool { return v.Until.Passed(t) })
	}
	p.Keys = slices.DeleteFunc(p.Keys, func(k Key) bool { return k.Until.Passed(t) })
	p.visit(func(_ string, s *Setting, l *Limit) {
		if s != nil && s.Until.Passed(t) {
			*s = Setting{}
		}
		if l != nil && l.Until.Passed(t) {
			*l = Limit{}
		}
	})
	return p
}

// visit calls f with each setting and each limit of the policy, and the name of its field in JSON.
func (p *Policy) visit(f func(path string, s *Setting, l *Limit)) {
	var walk func(prefix string, v reflect.Value)
	walk = func(prefix string, v reflect.Value) {
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			switch field := v.Field(i).Addr().Interface().(type) {
			case *Setting:
				f(prefix+name, field, nil)
			case *Limit:
				f(prefix+name, nil, field)
			case *Chain, *Stapling, *Resumption, *Records, *Sockets:
				walk(prefix+name+".", v.Field(i))
			}
		}
	}
	walk("", reflect.ValueOf(p).Elem())
}

// A Line is one value of a policy.
type Line struct {
	Field  string `json:"field"`           // as in the policy's JSON: "groups", "resumption.lifetime"
	Name   string `json:"name,omitempty"`  // of a value in a list: "x25519"
	Value  string `json:"value,omitempty"` // "yes", "600"; "" if the policy leaves the choice open
	Level  Level  `json:"level,omitempty"`
	Until  *Date  `json:"until,omitempty"`
	Needs  string `json:"needs,omitempty"`
	Source string `json:"source,omitempty"`
	Note   string `json:"note,omitempty"`
}

// Lines returns all values of the policy, in the order of its fields. Settings that the policy leaves
// open have a line if they have a note.
func (p *Policy) Lines() []Line {
	var lines []Line
	list := func(field string, values []Value) {
		for _, v := range values {
			lines = append(lines, Line{field, v.Name, "", v.Level, v.Until, v.Needs, v.Source, v.Note})
		}
	}
	list("versions", p.Versions)
	list("suites13", p.Suites13)
	list("suites12", p.Suites12)
	list("groups", p.Groups)
	list("signatures", p.Signatures)
	for _, k := range p.Keys {
		value := strings.Join(k.Curves, " ")
		if k.Bits != 0 {
			value = strconv.Itoa(k.Bits)
		}
		lines = append(lines, Line{"keys", k.Type, value, k.Level, k.Until, "", k.Source, k.Note})
	}
	list("chain.hashes", p.Chain.Hashes)
	p.visit(func(path string, s *Setting, l *Limit) {
		if l != nil {
			s = &Setting{"", l.Level, l.Source, l.Until, l.Note}
			if l.Value != 0 {
				s.Value = strconv.Itoa(l.Value)
			}
		}
		if s.Value != "" || s.Note != "" {
			lines = append(lines, Line{path, "", s.Value, s.Level, s.Until, "", s.Source, s.Note})
		}
	})
	if p.FIPS {
		lines = append(lines, Line{Field: "fips", Value: "yes", Level: Required})
	}
	slices.SortStableFunc(lines, func(a, b Line) int { return fieldIndex(a.Field) - fieldIndex(b.Field) })
	return lines
}

// A Difference is a value in which two policies differ. Sources and notes are not compared.
type Difference struct {
	Field string `json:"field"`          // as in the policies' JSON: "groups", "resumption.lifetime"
	Name  string `json:"name,omitempty"` // of a value in a list: "x25519"
	A     string `json:"a"`              // the first policy's: "recommended, until 2031-12-31"; "" if it has none
	B     string `json:"b"`
}

// Diff returns the values in which a and b differ, in the order of the fields. If both have the same
// names in a list in another order, this is one Difference without a Name.
func Diff(a, b *Policy) []Difference {
	var out []Difference
	left, right := a.byField(), b.byField()
	var fields []string
	for _, lines := range [][]Line{a.Lines(), b.Lines()} {
		for _, l := range lines {
			if !slices.Contains(fields, l.Field) {
				fields = append(fields, l.Field)
			}
		}
	}
	slices.SortStableFunc(fields, func(x, y string) int { return fieldIndex(x) - fieldIndex(y) })
	for _, field := range fields {
		l, r := left[field], right[field]
		for _, name := range union(l.order, r.order) {
			if x, y := l.text[name], r.text[name]; x != y {
				shown, _, _ := strings.Cut(name, "#")
				out = append(out, Difference{field, shown, x, y})
			}
		}
		common := func(order, other []string) []string {
			return slices.DeleteFunc(slices.Clone(order), func(n string) bool { return !slices.Contains(other, n) })
		}
		if x, y := common(l.order, r.order), common(r.order, l.order); !slices.Equal(x, y) {
			out = append(out, Difference{field, "", "order " + strings.Join(x, " "), "order " + strings.Join(y, " ")})
		}
	}
	return out
}

// fieldIndex returns the place of a field in the JSON of a policy.
func fieldIndex(field string) int {
	top, _, _ := strings.Cut(field, ".")
	t := reflect.TypeFor[Policy]()
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name == top {
			return i
		}
	}
	return t.NumField()
}

// values are the values of one field: the names in their order, and the text of each.
type values struct {
	order []string
	text  map[string]string
}

func (p *Policy) byField() map[string]values {
	fields := map[string]values{}
	for _, l := range p.Lines() {
		f := fields[l.Field]
		if f.text == nil {
			f.text = map[string]string{}
		}
		name := l.Name
		for i := 2; f.text[name] != ""; i++ { // RSA keys of two sizes
			name = fmt.Sprintf("%s#%d", l.Name, i)
		}
		f.order, f.text[name] = append(f.order, name), l.text()
		fields[l.Field] = f
	}
	return fields
}

// text returns the part of a line that Diff compares.
func (l Line) text() string {
	var parts []string
	if l.Value != "" {
		parts = append(parts, l.Value)
	}
	switch {
	case l.Level != Allowed:
		parts = append(parts, string(l.Level))
	case l.Name != "" && l.Value == "":
		parts = append(parts, "allowed")
	}
	if l.Until != nil {
		parts = append(parts, "until "+l.Until.String())
	}
	if l.Needs != "" {
		parts = append(parts, "with "+l.Needs+" only")
	}
	return strings.Join(parts, ", ")
}

// union returns the names in a, and the names in b that a lacks.
func union(a, b []string) []string {
	u := slices.Clone(a)
	for _, n := range b {
		if !slices.Contains(u, n) {
			u = append(u, n)
		}
	}
	return u
}
