package session

// A Ring is a list of ticket keys: the first seals, all of them open. It may be shared by any number of Contexts and changed while
// they use it.
type Ring struct{}
