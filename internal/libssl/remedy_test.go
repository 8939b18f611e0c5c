package libssl

import (
	"strings"
	"testing"
)

func TestPackages(t *testing.T) {
	for _, c := range []struct{ goos, release, want string }{
		{"linux", "PRETTY_NAME=\"Debian\"\nID=debian\n", "apt-get install libssl3"},
		{"linux", "ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", "apt-get install libssl3"},
		{"linux", "ID=alpine\nVERSION_ID=3.22", "apk add libssl3"},
		{"linux", "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", "dnf install openssl-libs"},
		{"linux", "ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"\n", "zypper install libopenssl3"},
		{"linux", "ID=arch\n", "pacman -S openssl"},
		{"linux", "ID=unheard-of\n", "Fedora, RHEL: openssl-libs"},
		{"linux", "", "Fedora, RHEL: openssl-libs"},
		{"darwin", "", "brew install openssl@3"},
		{"windows", "", "DLLs"},
		{"freebsd", "ID=freebsd", "OpenSSL 3 or 4"},
	} {
		if got := (system{c.goos, "amd64"}).packages(c.release); !strings.Contains(got, c.want) {
			t.Errorf("%s, %q: %s", c.goos, c.release, got)
		}
	}
	host := system{"linux", "amd64"}
	if got := host.remedy("/nonexistent"); strings.Contains(got, "install") {
		t.Errorf("for a path: %s", got)
	}
	for spec, want := range map[string]string{"": "install OpenSSL", "3.5": "install OpenSSL 3.5, or name"} {
		if got := host.remedy(spec); !strings.HasPrefix(got, want) {
			t.Errorf("for %q: %s", spec, got)
		}
	}
}
