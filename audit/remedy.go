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

// productOf returns the product of the server at hand, or "" if it isn't known.
func productOf(facts *Facts, target Target) string {
	product := Product(facts.Server)
	if product == "" && target.Protocol == "postgres" {
		product = "postgresql"
	}
	return product
}

// remedyFor returns the remedy for a product, if there is one, and else the general one.
func remedyFor(product, rule, general string) string {
	if remedy := remedies[rule][product]; remedy != "" {
		return remedy
	}
	return general
}
