/** Runs before the first paint: the theme that was chosen on an earlier visit, so that nothing flashes. */
import { apply, chosen } from "./theme";

apply(chosen());
