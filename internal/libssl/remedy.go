package libssl

import (
	"os"
	"strings"
)

// remedy returns what to do if no library was found for spec, which may be "".
func (s system) remedy(spec string) string {
	switch {
	case spec == "" || isVersion(spec):
	case exists(spec):
		return ""
	default:
		return "name a version such as 3, the path of libssl, or the path of its folder"
	}
	const named = ", or name a libssl by " + EnvLibrary
	if spec != "" { // the distribution's packages may have another version
		return "install OpenSSL " + spec + named
	}
	release, _ := os.ReadFile("/etc/os-release")
	return "install " + s.packages(string(release)) + named
}

// packages names the packages that have OpenSSL. release is the text of os-release(5), or "".
func (s system) packages(release string) string {
	const all = "OpenSSL 3 or 4 (Debian, Ubuntu, Alpine: libssl3; Fedora, RHEL: openssl-libs; SUSE: libopenssl3)"
	switch s.goos {
	case "darwin":
		return "OpenSSL 3 or 4 (brew install openssl@3)"
	case "windows":
		return "OpenSSL 3 or 4, with its DLLs in the program's folder"
	case "linux":
	default:
		return "OpenSSL 3 or 4"
	}
	var names []string // the distribution, and those that it is like
	for line := range strings.Lines(release) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if key == "ID" || key == "ID_LIKE" {
			names = append(names, strings.Fields(strings.Trim(value, `"'`))...)
		}
	}
	for _, name := range names {
		switch name {
		case "debian", "ubuntu":
			return "OpenSSL (apt-get install libssl3)"
		case "alpine":
			return "OpenSSL (apk add libssl3)"
		case "fedora", "rhel", "centos", "azurelinux", "amzn":
			return "OpenSSL (dnf install openssl-libs)"
		case "suse", "opensuse", "sles":
			return "OpenSSL (zypper install libopenssl3)"
		case "arch":
			return "OpenSSL (pacman -S openssl)"
		}
	}
	return all
}
