//go:build go1.27

package localca_test

const hasMLDSA = true
