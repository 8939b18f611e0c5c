package session_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ossl-go/ossl/session"
)

// counting returns n bytes that count up from first.
func counting(first byte, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = first + byte(i)
	}
	return b
}

// TestParseTicketKey parses both of nginx's layouts, which differ in the order of cipher and MAC
// key.
func TestParseTicketKey(t *testing.T) {
	file := counting(1, 80)
	k, err := session.ParseTicketKey(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(k.Name[:], file[:16]) || !bytes.Equal(k.MAC, file[16:48]) || !bytes.Equal(k.Cipher, file[48:80]) {
		t.Errorf("80 bytes: name %x, MAC %x, cipher %x", k.Name, k.MAC, k.Cipher)
	}
	k, err = session.ParseTicketKey(file[:48])
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(k.Name[:], file[:16]) || !bytes.Equal(k.Cipher, file[16:32]) || !bytes.Equal(k.MAC, file[32:48]) {
		t.Errorf("48 bytes: name %x, cipher %x, MAC %x", k.Name, k.Cipher, k.MAC)
	}
	for i := range file {
		file[i] = 0
	}
	if k.Cipher[0] == 0 || k.MAC[0] == 0 {
		t.Error("the key is the caller's memory")
	}
	for n := range 200 {
		if _, err := session.ParseTicketKey(counting(1, n)); (err == nil) != (n == 48 || n == 80) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if _, err := session.ParseTicketKey(make([]byte, 80)); err == nil {
		t.Error("a key of zero bytes was accepted")
	}
}

func FuzzParseTicketKey(f *testing.F) {
	f.Add(counting(1, 48))
	f.Add(counting(1, 80))
	f.Fuzz(func(t *testing.T, b []byte) {
		k, err := session.ParseTicketKey(b)
		if err != nil {
			return
		}
		if r, err := session.NewRing(k); err != nil {
			t.Fatalf("%x was parsed and then refused: %v", b, err)
		} else if keys, _ := r.Snapshot(); len(keys) != 1 || 16+len(keys[0].Cipher)+len(keys[0].MAC) != len(b) {
			t.Fatalf("%x", b)
		}
	})
}

func FuzzParseTicketKeyLines(f *testing.F) {
	f.Add([]byte(lines(48, 1, 2, 3)))
	f.Add([]byte(lines(80, 1, 2, 3, 4)))
	f.Fuzz(func(t *testing.T, b []byte) {
		keys, err := session.ParseTicketKeyLines(b)
		if err != nil {
			return
		}
		if len(keys) != 3 || len(keys[0].Cipher) != len(keys[2].MAC) {
			t.Fatalf("%q: %d keys", b, len(keys))
		}
		for _, k := range keys {
			if _, err := session.NewRing(k); err != nil {
				t.Fatalf("%q was parsed and then refused: %v", b, err)
			}
		}
	})
}

// lines returns HAProxy's file with keys of n bytes that count up from each first byte.
func lines(n int, first ...byte) string {
	var b strings.Builder
	for _, f := range first {
		b.WriteString(base64.StdEncoding.EncodeToString(counting(f, n)) + "\n")
	}
	return b.String()
}

// TestTicketKeyLines reads HAProxy's files.
func TestTicketKeyLines(t *testing.T) {
	path, nginx := filepath.Join(t.TempDir(), "keys"), filepath.Join(t.TempDir(), "nginx")
	if err := os.WriteFile(nginx, counting(1, 80), 0o600); err != nil {
		t.Fatal(err)
	}
	read := func(t *testing.T, text string, more ...string) ([]session.TicketKey, error) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return session.ReadTicketKeyFiles(append([]string{path}, more...)...)
	}
	for _, n := range []int{48, 80} {
		for _, text := range []string{lines(n, 10, 20, 30, 40), lines(n, 20, 30, 40), strings.TrimSuffix(lines(n, 20, 30, 40), "\n")} {
			keys, err := read(t, text)
			if err != nil || len(keys) != 3 || keys[0].Name[0] != 30 || keys[1].Name[0] != 40 || keys[2].Name[0] != 20 {
				t.Fatalf("%d bytes: %v, %v", n, keys, err)
			}
			key, half := counting(30, n), 16+(n-16)/2
			if !bytes.Equal(keys[0].Cipher, key[16:half]) || !bytes.Equal(keys[0].MAC, key[half:]) {
				t.Errorf("%d bytes: cipher %x, MAC %x", n, keys[0].Cipher, keys[0].MAC)
			}
		}
	}
	zero := base64.StdEncoding.EncodeToString(make([]byte, 48)) + "\n"
	for name, text := range map[string]string{
		"two keys":                lines(80, 1, 2),
		"two sizes":               lines(48, 1, 2) + lines(80, 3),
		"another size":            lines(64, 1, 2, 3),
		"a line of many bytes":    lines(300, 1, 2, 3),
		"an empty line":           lines(80, 1, 2, 3) + "\n",
		"no base64":               lines(80, 1, 2, 3) + "# a comment\n",
		"hexadecimal digits":      strings.Repeat(hex.EncodeToString(counting(1, 80))+"\n", 3),
		"zero":                    lines(48, 1) + zero + lines(48, 3),
		"zero, and not used":      zero + lines(48, 1, 2, 3),
		"three of nginx's in one": string(counting(1, 240)),
		"too large":               strings.Repeat(lines(80, 1, 2, 3, 4), 1<<20/400),
	} {
		t.Run(name, func(t *testing.T) {
			if keys, err := read(t, text); err == nil || keys != nil {
				t.Errorf("%v, %v", keys, err)
			}
		})
	}
	if keys, err := read(t, lines(80, 10, 20, 30), nginx); err == nil || keys != nil {
		t.Errorf("beside another file: %v, %v", keys, err)
	}
}

// TestKeyOf pins the derivation: members of a fleet that run different versions must agree. The
// expected values come from another implementation: HKDF-SHA256, without salt, of bytes 16 to 47 of
// the secret's SHA-512 (openssl dgst -sha512; openssl kdf -kdfopt digest:SHA256 -kdfopt hexkey:…
// -kdfopt info:"ossl session ticket key v1" -keylen 80 HKDF).
func TestKeyOf(t *testing.T) {
	k := session.KeyOf([32]byte(counting(1, 32)))
	got := hex.EncodeToString(append(append(k.Name[:], k.MAC...), k.Cipher...))
	const want = "bf6c871c0de91eef683530159c74e98b5947316cbf42436e1241703b11c7d435bc7b347192040eed" +
		"2abdea8b89b73e3ff248a66eae47ecb29c99097ccfa18afc377289001e30a2d3ff5bb52a48a74ccd"
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if other := session.KeyOf([32]byte(counting(2, 32))); other.Name == k.Name || bytes.Equal(other.Cipher, k.Cipher) {
		t.Error("another secret, the same key")
	}
	if _, err := session.NewRing(session.KeyOf([32]byte{})); err == nil {
		t.Error("a ring took the key of a secret that nobody has set")
	}
}

func TestNewTicketKey(t *testing.T) {
	a, b := session.NewTicketKey(), session.NewTicketKey()
	if len(a.Cipher) != 32 || len(a.MAC) != 32 || a.Name == b.Name || bytes.Equal(a.Cipher, b.Cipher) || bytes.Equal(a.MAC, b.MAC) ||
		bytes.Equal(a.Cipher, a.MAC) {
		t.Error("keys are not random")
	}
}

// TestNothingPrintsKeys prints keys, and values that contain them, in many ways, and looks for
// their bytes.
func TestNothingPrintsKeys(t *testing.T) {
	key := session.TicketKey{Name: [16]byte(counting(1, 16)), Cipher: counting(0xa1, 32), MAC: counting(0xd1, 16)}
	ring, err := session.NewRing(key)
	if err != nil {
		t.Fatal(err)
	}
	sealer, err := session.NewSealer("test", [32]byte(key.Cipher)) // a [32]byte is accepted too
	if err != nil {
		t.Fatal(err)
	}
	cache := session.NewCache(3)
	fill(t, cache, 1, 1)
	cache.Put(t.Context(), []byte("id"), key.Cipher, newClock().at.AddDate(20, 0, 0))
	cache.Put(t.Context(), key.MAC, []byte("session"), newClock().at.AddDate(20, 0, 0))
	holder := struct {
		Key    session.TicketKey
		Keys   []*session.TicketKey
		ByName map[string]session.TicketKey
		Ring   *session.Ring
		Secret session.Secret
	}{key, []*session.TicketKey{&key}, map[string]session.TicketKey{"k": key}, ring, session.Secret(key.Cipher)}

	var out bytes.Buffer
	values := []any{
		holder.Secret, key, &key, []session.TicketKey{key}, holder, &holder, ring, sealer, cache, session.Seal(cache, sealer),
	}
	for _, v := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "% x", "%d", "%T", "%#x", "%10.3v"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
		fmt.Fprint(&out, v)
		log.New(&out, "", 0).Print(v)
		for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
			slog.New(h).Info("a", "v", v, slog.Group("g", "w", v))
		}
		json.NewEncoder(&out).Encode(v)
		xml.NewEncoder(&out).Encode(v)
	}
	text := out.String()
	if strings.Count(text, hex.EncodeToString(key.Name[:])) < 50 {
		t.Error("names are not shown, so this test may be looking in the wrong place")
	}
	squeezed := strings.ToLower(strings.NewReplacer(" ", "", ",", "", "0x", "", "\\x", "", "\n", "").Replace(text))
	for _, secret := range [][]byte{key.Cipher, key.MAC} {
		part := secret[4:8] // of any of them
		decimal, list := fmt.Sprint(part), fmt.Sprintf("%d,%d,%d", part[0], part[1], part[2])
		for what, needle := range map[string]string{
			"raw bytes":    string(part),
			"decimals":     strings.Trim(decimal, "[]"),
			"a list":       list,
			"decimals, #v": strings.ReplaceAll(strings.Trim(decimal, "[]"), " ", ", "),
		} {
			if strings.Contains(text, needle) {
				t.Errorf("%s of %x are printed", what, secret)
			}
		}
		if strings.Contains(squeezed, hex.EncodeToString(part)) {
			t.Errorf("hex of %x is printed", secret)
		}
		for from := range 3 { // base64 of any alignment
			if b64, _ := json.Marshal(secret[from : from+9]); strings.Contains(text, strings.Trim(string(b64), `"`)) {
				t.Errorf("base64 of %x is printed", secret)
			}
		}
	}
}

func TestReadTicketKeyFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, b []byte, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	first, second := write("first", counting(1, 80), 0o600), write("second", counting(100, 48), 0o400)
	keys, err := session.ReadTicketKeyFiles(first, second)
	if err != nil {
		t.Fatal(err)
	}
	if len(keys) != 2 || keys[0].Name[0] != 1 || keys[1].Name[0] != 100 {
		t.Errorf("%v", keys)
	}
	if ring, err := session.NewRing(keys...); err != nil || ring.Generation() == 0 {
		t.Error(err)
	}
	bad := map[string]string{
		"no such file": filepath.Join(dir, "none"),
		"a folder":     dir,
		"empty":        write("empty", nil, 0o600),
		"47 bytes":     write("short", counting(1, 47), 0o600),
		"81 bytes":     write("long", counting(1, 81), 0o600),
		"zero":         write("zero", make([]byte, 80), 0o600),
	}
	if runtime.GOOS != "windows" {
		bad["the group's too"] = write("group", counting(1, 80), 0o640)
		bad["everybody's"] = write("others", counting(1, 80), 0o604)
		bad["the group may write"] = write("written", counting(1, 80), 0o620)
	}
	for name, path := range bad {
		t.Run(name, func(t *testing.T) {
			if keys, err := session.ReadTicketKeyFiles(first, path); err == nil || keys != nil {
				t.Errorf("%v, %v", keys, err)
			}
		})
	}
	if _, err := session.ReadTicketKeyFiles(); err == nil {
		t.Error("no files, no error")
	}
	// Files of another user are not checked, as with ssh.
	if os.Getuid() == 0 && runtime.GOOS == "linux" {
		path := write("nobodys", counting(1, 80), 0o644)
		if err := os.Chown(path, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		if _, err := session.ReadTicketKeyFiles(path); err != nil {
			t.Error(err)
		}
	}
}
