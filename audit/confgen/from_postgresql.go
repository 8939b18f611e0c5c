package confgen

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// postgresqlSetting splits a line "name = 'value' # comment".
func postgresqlSetting(line string) (name, value string) {
	line = strings.TrimSpace(line)
	end := strings.IndexAny(line, " \t=#'")
	if end < 0 {
		return line, ""
	}
	name = strings.ToLower(line[:end])
	rest := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line[end:]), "="))
	if !strings.HasPrefix(rest, "'") {
		value, _, _ = strings.Cut(rest, "#")
		return name, strings.TrimSpace(value)
	}
	var text []byte
	for i := 1; i < len(rest); i++ {
		switch {
		case (rest[i] == '\\' || rest[i] == '\'') && i+1 < len(rest) && (rest[i] == '\\' || rest[i+1] == '\''):
			i++
		case rest[i] == '\'':
			return name, string(text)
		}
		text = append(text, rest[i])
	}
	return name, string(text)
}

func (c *Config) readPostgreSQL(r *reading, file string) error { return c.postgresqlFile(r, file, 0) }

func (c *Config) postgresqlFile(r *reading, file string, depth int) error {
	text, err := r.file(file, depth)
	if err != nil {
		return err
	}
	return logicalLines(text, false, func(line string, number int) error {
		name, value := postgresqlSetting(line)
		switch {
		case value == "" || r.full(Place{file, number}):
		case name == "include" || name == "include_dir":
			pattern := value
			if name == "include_dir" {
				pattern = filepath.Join(value, "*.conf")
			}
			return r.include(statement{words: []string{name, value}, Place: Place{file, number}}, pattern,
				func(name string) error { return c.postgresqlFile(r, name, depth+1) })
		case name == "include_if_exists":
			if !filepath.IsAbs(value) {
				value = filepath.Join(r.base, value)
			}
			if err := c.postgresqlFile(r, value, depth+1); errors.Is(err, errUnreadable) && !errors.Is(err, fs.ErrNotExist) {
				r.note(Place{file, number}, "%s: %v", name, err)
			} else if err != nil && !errors.Is(err, errUnreadable) {
				return err
			}
		case strings.HasPrefix(name, "ssl") && !secretFile(name):
			if name == "ssl" || name == "ssl_prefer_server_ciphers" {
				if value = onOff(slices.Contains([]string{"on", "true", "yes", "1", "t", "y"}, strings.ToLower(value))); name == "ssl" &&
					value == "on" && len(c.Sites) == 0 {
					c.Sites = []Place{{file, number}}
				}
			} else {
				value = "'" + value + "'"
			}
			c.put("main", name, value)
		}
		return nil
	})
}
