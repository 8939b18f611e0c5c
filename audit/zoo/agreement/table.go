package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// table writes the agreement as Markdown, and returns the number of disagreements that are not
// decided.
func table(w io.Writer, rows []row) (undecided int) {
	fmt.Fprintf(w, "## Agreement on %d servers\n\n", len(rows))
	fmt.Fprintln(w, "| fact | testssl.sh agrees | differs | alone | sslyze agrees | differs | alone |")
	fmt.Fprintln(w, "|---|--:|--:|--:|--:|--:|--:|")
	var differences []difference
	var total [3]int
	for _, fact := range names(rows) {
		cells := []string{fact}
		asked := false
		for _, tool := range []string{"testssl.sh", "sslyze"} {
			var counts [3]int // agree, differ, alone
			for _, r := range rows {
				ours, theirs, ok := r.compare(tool, fact)
				switch {
				case !ok:
					continue
				case ours == theirs:
					counts[0]++
					continue
				case ours == "":
					counts[2]++
				default:
					counts[1]++
				}
				differences = append(differences, difference{r.server.Name, fact, tool, ours, theirs})
			}
			for i, n := range counts {
				asked = asked || n > 0
				total[i] += n
				cells = append(cells, fmt.Sprint(n))
			}
		}
		if asked {
			fmt.Fprintln(w, "| "+strings.Join(cells, " | ")+" |")
		}
	}
	fmt.Fprintf(w, "\nOf %d answers %d agree and %d differ; %d are about facts that ossl check doesn't test\nat that server.\n",
		total[0]+total[1]+total[2], total[0], total[1], total[2])
	undecided = decided(w, differences)
	costs(w, rows)
	return undecided
}

// decided writes the differences, those with one decision in one line.
func decided(w io.Writer, differences []difference) (undecided int) {
	fmt.Fprintf(w, "\n## Disagreements\n\n")
	fmt.Fprintln(w, "| servers | fact | ossl check | other | right | the packet or byte that decides |\n|---|---|---|---|---|---|")
	merged := map[string][]string{}
	var order []string
	for _, d := range differences {
		right, why := d.decide()
		if right == "" {
			undecided++
			right, why = "**undecided**", ""
		}
		ours, theirs := show(d.ours), d.theirs
		if d.ours != "" && strings.HasPrefix(d.fact, "suites") {
			ours, theirs = "", against(d.ours, d.theirs)
		}
		key := strings.Join([]string{d.fact, ours, d.tool + ": " + theirs, right, why}, " | ")
		if merged[key] == nil {
			order = append(order, key)
		}
		merged[key] = append(merged[key], d.server)
	}
	for _, key := range order {
		servers := strings.Join(merged[key], ", ")
		if len(merged[key]) > 6 {
			servers = fmt.Sprintf("%s and %d more", strings.Join(merged[key][:3], ", "), len(merged[key])-3)
		}
		fmt.Fprintf(w, "| %s | %s |\n", servers, key)
	}
	return undecided
}

// compare returns an audit's and a tool's answers in a form in which they can be compared, and
// whether they can: the fact exists with the server's versions, and the tool gave an answer.
func (r row) compare(tool, fact string) (ours, theirs string, ok bool) {
	ours, theirs = r.ours[fact], r.of(tool)[fact]
	if theirs == "" || strings.HasPrefix(fact, "partial ") || strings.HasPrefix(fact, "inherits ") {
		return "", "", false
	}
	offered := 0
	for _, v := range versions {
		if r.ours[v] == "yes" {
			offered++
		}
	}
	switch fact {
	case factFallback: // there must be a lower version
		ok = offered != 1
	case factEMS, factSecure, factClient, factCompression, factID: // TLS 1.3 has none of them
		ok = offered != 1 || r.ours["TLS 1.3"] != "yes"
	case factEarly: // TLS 1.3 alone has it
		ok = r.ours["TLS 1.3"] != "no"
	default:
		ok = true
	}
	version, suites := strings.CutPrefix(fact, "suites of ")
	if !suites || ours == "" {
		return ours, theirs, ok
	}
	if r.ours["partial "+version] == "yes" { // then ours reports that it has a part of the list
		return ours, list(slices.DeleteFunc(strings.Fields(theirs), func(suite string) bool {
			return !slices.Contains(strings.Fields(ours), suite)
		})), ok
	}
	if r.ours["inherits "+version] == "yes" { // then ours has the suites that no later version has
		for _, later := range versions[slices.Index(versions, version)+1 : len(versions)-1] {
			ours, theirs = minus(ours, r.ours["suites of "+later]), minus(theirs, r.of(tool)["suites of "+later])
		}
	}
	return ours, theirs, ok
}

// minus returns a list without another's elements.
func minus(all, remove string) string {
	return list(slices.DeleteFunc(strings.Fields(all), func(one string) bool {
		return one == "none" || slices.Contains(strings.Fields(remove), one)
	}))
}

func (r row) of(tool string) answers {
	if tool == "sslyze" {
		return r.sslyze
	}
	return r.testssl
}

func show(value string) string {
	if value == "" {
		return "not tested"
	}
	return value
}

// against returns the elements in which two lists differ.
func against(ours, theirs string) string {
	a, b := strings.Fields(ours), strings.Fields(theirs)
	var parts []string
	for _, one := range a {
		if !slices.Contains(b, one) {
			parts = append(parts, "without "+one)
		}
	}
	for _, one := range b {
		if !slices.Contains(a, one) {
			parts = append(parts, "with "+one)
		}
	}
	return strings.Join(parts, ", ")
}

// costs writes the time that each tool took.
func costs(w io.Writer, rows []row) {
	if len(rows) == 0 {
		return
	}
	var seconds [3][]float64
	connections := 0
	for _, r := range rows {
		for i := range seconds {
			seconds[i] = append(seconds[i], r.seconds[i])
		}
		connections = max(connections, r.connections)
	}
	fmt.Fprintln(w, "\n## Time\n\n| | median, s | longest, s |\n|---|---|---|")
	for i, tool := range []string{"ossl check", "testssl.sh", "sslyze"} {
		slices.Sort(seconds[i])
		fmt.Fprintf(w, "| %s | %.1f | %.1f |\n", tool, seconds[i][len(rows)/2], seconds[i][len(rows)-1])
	}
	fmt.Fprintf(w, "\nossl check made at most %d connections to a server.\n", connections)
}
