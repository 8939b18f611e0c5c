package terminator

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// maxFile bounds the bytes of a configuration file.
const maxFile = 1 << 20

// file is a Config as TOML has it.
type file struct {
	Config
	Sites []fileSite `toml:"site"`
}

type fileSite struct {
	Site
	Pair         // the first one
	Pairs []Pair `toml:"pair"` // further ones, for other kinds of keys
	To    any    `toml:"to"`   // a text, or a list of texts
}

// ReadFile reads a Config from a file in TOML, and checks it. Keys that don't exist are refused.
// Errors begin with the file's name and, if TOML itself is wrong or a key is, with the line.
func ReadFile(name string) (*Config, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readConfig(f, name)
}

// readConfig reads a Config from an open file with a name.
func readConfig(f io.Reader, name string) (*Config, error) {
	text := make([]byte, maxFile+1)
	n, err := readFull(f, text)
	if err != nil {
		return nil, err
	}
	if n > maxFile {
		return nil, fmt.Errorf("%s has more than %d bytes", name, maxFile)
	}
	c, err := parse(text[:n])
	if err != nil {
		return nil, fmt.Errorf("%s:%w", name, err)
	}
	c.File, c.text = name, text[:n]
	return c, nil
}

// parse reads a Config. Its errors begin with a line and a colon, or with a space.
func parse(text []byte) (*Config, error) {
	const unset = "\x00"
	in := file{Config: Config{Engine: "ossl", Policy: unset, Landlock: DefaultLandlock, Limits: DefaultLimits()}}
	var keys map[string]any
	if err := toml.Unmarshal(text, &keys); err != nil {
		return nil, decodingError(err)
	}
	if err := checkCase(keys); err != nil {
		return nil, err
	}
	if err := checkTimes(keys); err != nil {
		return nil, err
	}
	decoder := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields()
	if err := decoder.Decode(&in); err != nil {
		return nil, decodingError(err)
	}
	c := &in.Config
	switch {
	case c.Policy == "none", c.Policy == unset && (c.Engine != "ossl" || c.FIPS || c.Plain):
		c.Policy = ""
	case c.Policy == unset:
		c.Policy = DefaultPolicy
	}
	for _, s := range in.Sites {
		to, err := texts(s.To)
		if err != nil {
			return nil, fmt.Errorf(" site.to: %w", err)
		}
		site := s.Site
		site.Backend.SetTo(to)
		if s.Pair != (Pair{}) {
			site.Pairs = append(site.Pairs, s.Pair)
		}
		site.Pairs = append(site.Pairs, s.Pairs...)
		c.Sites = append(c.Sites, site)
	}
	if err := c.Check(); err != nil {
		return nil, fmt.Errorf(" %w", err)
	}
	return c, nil
}

// texts returns the texts of a value of TOML that may be a text or a list of texts.
func texts(value any) (list []string, err error) {
	const wanted = "a text is needed, or a list of texts such as [\"a\", \"b\"]"
	switch value := value.(type) {
	case nil:
		return nil, nil
	case string:
		return []string{value}, nil
	case []any:
		for _, element := range value {
			text, ok := element.(string)
			if !ok {
				return nil, errors.New(wanted)
			}
			list = append(list, text)
		}
	}
	if len(list) == 0 {
		return nil, errors.New(wanted)
	}
	return list, nil
}

// checkCase refuses keys that aren't in lower case. go-toml would take them for those that are, and of
// two that differ in nothing else it would take the last one.
func checkCase(value any) error {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if key != strings.ToLower(key) {
				return fmt.Errorf(" unknown key %q: keys are in lower case", key)
			}
			if err := checkCase(value[key]); err != nil {
				return err
			}
		}
	case []any:
		for _, element := range value {
			if err := checkCase(element); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkTimes refuses a time that isn't a text: go-toml takes a whole number for nanoseconds.
func checkTimes(keys map[string]any) error {
	limits, _ := keys["limits"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		if strings.HasSuffix(name, "-timeout") {
			if err := checkTime("limits."+name, limits[name]); err != nil {
				return err
			}
		}
	}
	sites, _ := keys["site"].([]any)
	for _, site := range sites {
		site, _ := site.(map[string]any)
		if value, ok := site["check-interval"]; ok {
			if err := checkTime("site.check-interval", value); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkTime refuses a time that isn't a text.
func checkTime(name string, value any) error {
	switch value := value.(type) {
	case string:
		return nil
	case int64:
		return fmt.Errorf(" %s: %d has no unit: write a text such as \"%ds\"", name, value, value)
	}
	return fmt.Errorf(" %s: write a text such as \"5s\"", name)
}

// decodingError returns an error with its line.
func decodingError(err error) error {
	var missing *toml.StrictMissingError
	if errors.As(err, &missing) && len(missing.Errors) > 0 {
		first := missing.Errors[0]
		row, _ := first.Position()
		return fmt.Errorf("%d: unknown key %q", row, strings.Join(first.Key(), "."))
	}
	var decode *toml.DecodeError
	if errors.As(err, &decode) {
		row, _ := decode.Position()
		text := strings.TrimPrefix(decode.Error(), "toml: ")
		if m := wrongType.FindStringSubmatch(text); m != nil {
			text = fmt.Sprintf("%s: a TOML %s, where %s is needed", strings.Join(decode.Key(), "."), m[1], kindOf(m[2]))
		}
		return fmt.Errorf("%d: %s", row, text)
	}
	return fmt.Errorf(" %w", err)
}

// wrongType matches go-toml's errors about values of the wrong kind, which name Go types.
var wrongType = regexp.MustCompile(`^cannot decode TOML (.+) into (?:struct field .+ of type )?(.+)$`)

// kindOf describes the TOML values for a Go type.
func kindOf(goType string) string {
	switch goType {
	case "string", "*string":
		return "a text"
	case "[]string":
		return `a list of texts, such as ["a", "b"]`
	case "int":
		return "a whole number"
	case "bool":
		return "true or false"
	}
	return "a table"
}
