//go:build unix

package settings_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/ossl-go/ossl/internal/unchanged/settings"
)

// all has every key that doesn't contradict another one.
const all = `{
  "format": 1,
  "locked": true,
  "keys": ["pkcs11:token=web;object=tls?pin-source=file:/etc/app/pin", "handle:0x81000000", "/etc/app/tls.key"],
  "key_log": "/var/log/app/keys",
  "servers": {
    "security_level": 0,
    "host_policy": "ignore",
    "tls13_cipher_suites": ["TLS_AES_128_GCM_SHA256", "TLS_AES_128_CCM_SHA256"],
    "record_path": "direct",
    "truncation": "eof",
    "kernel_tls": true,
    "sessions": {"id": 10000, "tls13": "id"},
    "ticket_keys": ["/etc/app/current", "/etc/app/previous"],
    "session_lifetime": "12h"
  },
  "clients": {"policy": "default", "security_level": 3, "truncation": "error"}
}`

func TestList(t *testing.T) {
	f, err := settings.Parse([]byte(all))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range f.List() {
		got = append(got, s.Name+" "+s.Value)
	}
	want := []string{
		`locked true`,
		`keys ["pkcs11:token=web;object=tls?...","handle:...","/etc/app/tls.key"]`,
		`key_log "/var/log/app/keys"`,
		`servers.security_level 0`,
		`servers.host_policy "ignore"`,
		`servers.tls13_cipher_suites ["TLS_AES_128_GCM_SHA256","TLS_AES_128_CCM_SHA256"]`,
		`servers.record_path "direct"`,
		`servers.truncation "eof"`,
		`servers.kernel_tls true`,
		`servers.sessions.id 10000`,
		`servers.sessions.tls13 "id"`,
		`servers.ticket_keys ["/etc/app/current","/etc/app/previous"]`,
		`servers.session_lifetime "12h"`,
		`clients.policy "default"`,
		`clients.security_level 3`,
		`clients.truncation "error"`,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the list is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestParseRefuses: each error has the key.
func TestParseRefuses(t *testing.T) {
	servers := func(s string) string { return `{"format": 1, "servers": {` + s + `}}` }
	clients := func(s string) string { return `{"format": 1, "clients": {` + s + `}}` }
	for _, test := range []struct{ name, text, key string }{
		{"nothing", ``, ""},
		{"not an object", `[]`, ""},
		{"a second value", `{"format": 1} {}`, ""},
		{"cut", `{"format": 1`, ""},
		{"too large", `{"format": 1}` + strings.Repeat(" ", settings.MaxSize), ""},
		{"twice", servers(`"kernel_tls": true, "kernel_tls": true`), ""},
		{"no format", `{"fips": true}`, "format"},
		{"another format", `{"format": 2}`, "format"},
		{"format as text", `{"format": "1"}`, "format"},
		{"unknown key", `{"format": 1, "curves": []}`, "curves"},
		{"unknown key of a role", servers(`"curves": []`), "servers.curves"},
		{"upper case", servers(`"Kernel_TLS": true`), "servers.Kernel_TLS"},
		{"null", servers(`"kernel_tls": null`), "servers.kernel_tls"},
		{"role null", `{"format": 1, "servers": null}`, "servers"},
		{"role empty", `{"format": 1, "servers": {}}`, "servers"},
		{"role a list", `{"format": 1, "servers": []}`, "servers"},
		{"false", `{"format": 1, "fips": false}`, "fips"},
		{"text for a boolean", servers(`"kernel_tls": "yes"`), "servers.kernel_tls"},
		{"fraction", servers(`"security_level": 1.5`), "servers.security_level"},
		{"level above", servers(`"security_level": 6`), "servers.security_level"},
		{"level below", clients(`"security_level": -1`), "clients.security_level"},
		{"host policy", servers(`"host_policy": "no"`), "servers.host_policy"},
		{"empty text", servers(`"host_policy": ""`), "servers.host_policy"},
		{"record path", clients(`"record_path": "kernel"`), "clients.record_path"},
		{"truncation", clients(`"truncation": "ignore"`), "clients.truncation"},
		{"kernel TLS by libssl", servers(`"kernel_tls": true, "record_path": "libssl"`), "servers.kernel_tls"},
		{"no suites", servers(`"tls13_cipher_suites": []`), "servers.tls13_cipher_suites"},
		{"unknown suite", servers(`"tls13_cipher_suites": ["X"]`), "servers.tls13_cipher_suites"},
		{"suite of TLS 1.2", servers(`"tls13_cipher_suites": ["TLS_RSA_WITH_AES_128_CBC_SHA"]`), "servers.tls13_cipher_suites"},
		{"suite twice", servers(`"tls13_cipher_suites": ["TLS_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256"]`),
			"servers.tls13_cipher_suites"},
		{"suite not a text", servers(`"tls13_cipher_suites": [4865]`), "servers.tls13_cipher_suites[0]"},
		{"policy", servers(`"policy": "nist"`), "servers.policy"},
		{"policy and suites", servers(`"policy": "default", "tls13_cipher_suites": ["TLS_AES_128_GCM_SHA256"]`),
			"servers.tls13_cipher_suites"},
		{"policy and kernel", clients(`"policy": "default", "kernel_tls": true`), "clients.kernel_tls"},
		{"policy and sessions", servers(`"policy": "default", "sessions": {"id": 1}`), "servers.sessions"},
		{"policy and lifetime", servers(`"policy": "default", "session_lifetime": "1h"`), "servers.session_lifetime"},
		{"no sessions", servers(`"sessions": {"id": 0}`), "servers.sessions.id"},
		{"too many sessions", servers(`"sessions": {"id": 10000001}`), "servers.sessions.id"},
		{"tickets of TLS 1.3", servers(`"sessions": {"id": 1, "tls13": "both"}`), "servers.sessions.tls13"},
		{"Redis", servers(`"sessions": {"id": 1, "redis": "x"}`), "servers.sessions.redis"},
		{"Redis of servers", servers(`"redis": "x"`), "servers.redis"},
		{"metrics", `{"format": 1, "metrics": "app"}`, "metrics"},
		{"relative ticket key", servers(`"ticket_keys": ["a"]`), "servers.ticket_keys[0]"},
		{"no ticket keys", servers(`"ticket_keys": []`), "servers.ticket_keys"},
		{"no time", servers(`"session_lifetime": "12"`), "servers.session_lifetime"},
		{"more than a week", servers(`"session_lifetime": "200h"`), "servers.session_lifetime"},
		{"sessions of clients", clients(`"sessions": {"id": 1}`), "clients.sessions"},
		{"ticket keys of clients", clients(`"ticket_keys": ["/a"]`), "clients.ticket_keys"},
		{"lifetime of clients", clients(`"session_lifetime": "1h"`), "clients.session_lifetime"},
		{"no keys", `{"format": 1, "keys": []}`, "keys"},
		{"relative key", `{"format": 1, "keys": ["tls.key"]}`, "keys[0]"},
		{"PIN", `{"format": 1, "keys": ["/a", "pkcs11:object=tls?PIN-value=1234"]}`, "keys[1]"},
		{"relative key log", `{"format": 1, "key_log": "keys"}`, "key_log"},
		{"key log in FIPS mode", `{"format": 1, "fips": true, "key_log": "/keys"}`, "key_log"},
		{"keys in FIPS mode", `{"format": 1, "fips": true, "keys": ["/key"]}`, "keys"},
		{"kernel TLS in FIPS mode", `{"format": 1, "fips": true, "clients": {"kernel_tls": true}}`, "clients.kernel_tls"},
		{"level in FIPS mode", `{"format": 1, "fips": true, "servers": {"security_level": 1}}`, "servers.security_level"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := settings.Parse([]byte(test.text))
			var e *settings.Error
			if !errors.As(err, &e) || e.Key != test.key {
				t.Errorf("the error is %v, want one for the key %q", err, test.key)
			}
		})
	}
}

func TestCheckBuilt(t *testing.T) {
	for text, key := range map[string]string{`{"format": 1, "key_log": "/keys"}`: "key_log", `{"format": 1, "fips": true}`: ""} {
		f, err := settings.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var e *settings.Error
		if err := f.CheckBuilt(); key == "" && err != nil || key != "" && (!errors.As(err, &e) || e.Key != key) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestLoad(t *testing.T) {
	const fips, locked, kernel = `{"format": 1, "fips": true}`, `{"format": 1, "locked": true}`,
		`{"format": 1, "servers": {"kernel_tls": true}}`
	for _, test := range []struct {
		name          string
		built, file   string // file "" means no variable
		privileged    bool
		want, refused string // the names of the settings; the key of an error, or "file"
	}{
		{name: "nothing"},
		{name: "built", built: kernel, want: "servers.kernel_tls"},
		{name: "file", file: kernel, want: "servers.kernel_tls"},
		{name: "both", built: kernel, file: `{"format": 1, "clients": {"kernel_tls": true}}`, want: "clients.kernel_tls"},
		{name: "locked", built: locked, file: kernel, refused: "file"},
		{name: "lock in the file", file: locked, refused: "locked"},
		{name: "FIPS mode stays", built: fips, file: `{"format": 1}`, want: "fips"},
		{name: "FIPS mode contradicted", built: fips, file: kernel, refused: "servers.kernel_tls"},
		{name: "privileged", built: kernel, file: fips, privileged: true, want: "servers.kernel_tls"},
		{name: "wrong key", file: `{"format": 1, "x": 1}`, refused: "x"},
	} {
		t.Run(test.name, func(t *testing.T) {
			name := ""
			if test.file != "" {
				name = file(t, test.file)
			}
			l, err := settings.Load(test.built, name, test.privileged)
			if test.refused != "" {
				var e *settings.Error
				if !errors.As(err, &e) || e.Key != strings.TrimPrefix(test.refused, "file") || !strings.HasPrefix(e.Source, settings.Env) {
					t.Errorf("the error is %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, s := range l.List() {
				names = append(names, s.Name)
			}
			if got := strings.Join(names, " "); got != test.want || (l.Note != "") != test.privileged {
				t.Errorf("in force is %q, want %q; note %q", got, test.want, l.Note)
			}
		})
	}
}

func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "settings.json")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestRead: files that others could have written are refused, and so is everything that isn't a file.
func TestRead(t *testing.T) {
	mode := func(mode os.FileMode) func(*testing.T) string {
		return func(t *testing.T) string {
			name := file(t, "{}")
			if err := os.Chmod(name, mode); err != nil {
				t.Fatal(err)
			}
			return name
		}
	}
	for _, test := range []struct {
		name    string
		file    func(*testing.T) string
		refused bool
	}{
		{"readable by all", mode(0o644), false},
		{"writable by the group", mode(0o664), true},
		{"writable by all", mode(0o606), true},
		{"link", func(t *testing.T) string {
			name := file(t, "{}")
			if err := os.Symlink(name, name+".link"); err != nil {
				t.Fatal(err)
			}
			return name + ".link"
		}, false},
		{"missing", func(t *testing.T) string { return file(t, "") + ".missing" }, true},
		{"folder", func(t *testing.T) string { return t.TempDir() }, true},
		{"pipe", func(t *testing.T) string {
			name := file(t, "") + ".pipe"
			if err := syscall.Mkfifo(name, 0o600); err != nil {
				t.Fatal(err)
			}
			return name
		}, true},
		{"another user's", func(t *testing.T) string {
			if os.Geteuid() != 0 {
				t.Skip("only root can give a file away: run the test as root")
			}
			name := file(t, "{}")
			if err := os.Chown(name, 1234, -1); err != nil {
				t.Fatal(err)
			}
			return name
		}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			b, err := settings.Read(test.file(t))
			if (err != nil) != test.refused || err == nil && string(b) != "{}" {
				t.Errorf("%q, %v", b, err)
			}
		})
	}
}

// FuzzParse: nothing is accepted and then ignored, and settings survive being written.
func FuzzParse(f *testing.F) {
	f.Add([]byte(all))
	f.Add([]byte(`{"format": 1, "fips": true, "servers": {"policy": "fips-140-3", "ticket_keys": ["/a"]}}`))
	f.Add([]byte(`{"format": 1, "servers": {"security_level": 0, "tls13_cipher_suites": ["tls_aes_128_gcm_sha256"]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		parsed, err := settings.Parse(b)
		if err != nil {
			if e := (*settings.Error)(nil); !errors.As(err, &e) {
				t.Fatalf("an error of type %T", err)
			}
			return
		}
		var tree map[string]any
		if err := json.Unmarshal(b, &tree); err != nil {
			t.Fatal(err)
		}
		if got, want := len(parsed.List()), leaves(tree)-1; got != want { // format is no setting
			t.Errorf("%s: %d settings are in force, %d are set", b, got, want)
		}
	})
}

// leaves counts the values in objects.
func leaves(tree map[string]any) (n int) {
	for _, v := range tree {
		switch v := v.(type) {
		case map[string]any:
			n += leaves(v)
		default:
			n++
		}
	}
	return n
}
