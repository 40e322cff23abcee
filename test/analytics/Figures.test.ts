import { describe } from "@effect/vitest"
import { describeFigures } from "./FiguresRuns.ts"

describe("stats and breakdowns", () => describeFigures(1))
