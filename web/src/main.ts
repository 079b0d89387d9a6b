/** The page begins here. */
import "./page";
