// Package psk tests external pre-shared keys: both roles and versions, what an attacker can try, and other
// implementations' programs.
package psk
