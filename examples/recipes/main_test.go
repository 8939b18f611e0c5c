package recipes_test

import (
	"testing"

	"github.com/ossl-go/ossl/internal/recipetest"
)

func TestMain(m *testing.M) { recipetest.Main(m, "examples/recipes", "../../docs/RECIPES.md") }

// TestCode: the code in the document is the code that the other tests run.
func TestCode(t *testing.T) { recipetest.CheckCode(t) }
