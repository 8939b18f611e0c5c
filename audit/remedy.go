package audit

import (
	"slices"
	"strings"
)

// Products are the servers whose directives remedies can name.
var Products = []string{"nginx", "apache", "haproxy", "lighttpd", "caddy", "postgresql", "go"}

// Product returns the product's name in [Products] of a server such as "Apache/2.4.62 (Debian)", or "".
func Product(server string) string {
	name, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(server)), "/")
	name, _, _ = strings.Cut(name, " ")
	switch name {
	case "httpd":
		return "apache"
	case "openresty", "tengine":
		return "nginx"
	case "postgres":
		return "postgresql"
	}
	if slices.Contains(Products, name) {
		return name
	}
	return ""
}

// remedyFor returns the remedy for the server at hand, if it is known, and else the general one.
func remedyFor(facts *Facts, target Target, rule, general string) string {
	product := Product(facts.Server)
	if product == "" && target.Protocol == "postgres" {
		product = "postgresql"
	}
	if remedy := remedies[rule][product]; remedy != "" {
		return remedy
	}
	return general
}
