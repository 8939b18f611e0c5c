package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/ossl-go/ossl/audit"
)

// SARIF 2.1.0, OASIS standard of 2020-03-27: the parts that a check has.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool        sarifTool         `json:"tool"`
		Invocations []sarifInvocation `json:"invocations"`
		Results     []sarifResult     `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		Version        string      `json:"version"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string         `json:"id"`
		ShortDescription sarifText      `json:"shortDescription"`
		FullDescription  sarifText      `json:"fullDescription"`
		HelpURI          string         `json:"helpUri"`
		Properties       map[string]any `json:"properties"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifInvocation struct {
		Successful    bool                `json:"executionSuccessful"`
		Notifications []sarifNotification `json:"toolExecutionNotifications"`
	}
	sarifNotification struct {
		Level          string              `json:"level"`
		Message        sarifText           `json:"message"`
		AssociatedRule *sarifRuleReference `json:"associatedRule,omitempty"`
		Locations      []sarifLocation     `json:"locations"`
	}
	sarifRuleReference struct {
		ID    string `json:"id"`
		Index int    `json:"index"`
	}
	sarifResult struct {
		RuleID       string            `json:"ruleId"`
		RuleIndex    int               `json:"ruleIndex"`
		Level        string            `json:"level"`
		Message      sarifText         `json:"message"`
		Locations    []sarifLocation   `json:"locations"`
		Fingerprints map[string]string `json:"partialFingerprints"`
		Properties   map[string]any    `json:"properties"`
	}
	sarifLocation struct {
		Physical sarifPhysical  `json:"physicalLocation"`
		Logical  []sarifLogical `json:"logicalLocations"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifLogical struct {
		Name string `json:"fullyQualifiedName"`
		Kind string `json:"kind"`
	}
)

// home is the document that explains the rules.
const home = "https://github.com/ossl-go/ossl/blob/main/docs/CHECK.md"

func writeSARIF(w io.Writer, d *Document, _ Options) error {
	run := sarifRun{Results: []sarifResult{}}
	run.Tool.Driver = sarifDriver{Name: "ossl check", Version: d.Tool, InformationURI: home}
	index := map[string]int{}
	for i, rule := range audit.Rules() {
		index[rule.ID] = i
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{
			ID:               rule.ID,
			ShortDescription: sarifText{rule.Title},
			FullDescription:  sarifText{rule.Reason},
			HelpURI:          home + "#" + rule.ID,
			Properties:       map[string]any{"axis": rule.Axis, "source": rule.Source},
		})
	}
	invocation := sarifInvocation{Successful: true, Notifications: []sarifNotification{}}
	for _, r := range d.Reports {
		for _, f := range r.Findings {
			run.Results = append(run.Results, sarifFinding(r, f, index[f.Rule]))
		}
		if r.Error != "" {
			invocation.Successful = false
			invocation.Notifications = append(invocation.Notifications,
				sarifNotification{Level: "error", Message: sarifText{r.Error}, Locations: locations(r, "")})
			continue
		}
		for _, result := range inState(r, audit.Failed) {
			invocation.Notifications = append(invocation.Notifications, sarifNotification{
				Level:          "warning",
				Message:        sarifText{"failed to test: " + result.Reason},
				AssociatedRule: &sarifRuleReference{result.Rule, index[result.Rule]},
				Locations:      locations(r, ""),
			})
		}
	}
	run.Invocations = []sarifInvocation{invocation}
	return encodeJSON(w, sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}})
}

func sarifFinding(r *audit.Report, f audit.Finding, index int) sarifResult {
	levels := map[audit.Severity]string{audit.Critical: "error", audit.High: "error", audit.Medium: "warning"}
	level := levels[f.Severity]
	if level == "" {
		level = "note"
	}
	var text []string
	for _, part := range []string{sentence(f.Title), f.Evidence, f.Reason, f.Remedy} {
		if part != "" {
			text = append(text, part)
		}
	}
	return sarifResult{
		RuleID:       f.Rule,
		RuleIndex:    index,
		Level:        level,
		Message:      sarifText{strings.Join(text, " ")},
		Locations:    locations(r, f.Address),
		Fingerprints: map[string]string{"targetAndRule/v1": fmt.Sprintf("%s %s %s", targetOf(r), f.Address, f.Rule)},
		Properties:   map[string]any{"severity": f.Severity, "axis": f.Axis, "price": f.Price, "source": f.Source},
	}
}

// locations returns the server that a result is about. Code scanning requires an artifact, so the
// target's URL stands for one.
func locations(r *audit.Report, address string) []sarifLocation {
	name := targetOf(r)
	if address != "" {
		name += " at " + address
	}
	return []sarifLocation{{
		Physical: sarifPhysical{sarifArtifact{r.Target.Protocol + "://" + targetOf(r)}},
		Logical:  []sarifLogical{{name, "resource"}},
	}}
}

// sentence ends text with a full stop.
func sentence(text string) string {
	if text == "" || strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}
