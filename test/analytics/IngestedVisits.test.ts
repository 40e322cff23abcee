import { describe } from "@effect/vitest"
import { describeVisits } from "./IngestedVisitsRuns.ts"

describe("from 3 seeds,", () => describeVisits(3))
