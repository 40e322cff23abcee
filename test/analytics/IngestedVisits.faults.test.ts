import { describe } from "@effect/vitest"
import { describeVisits } from "./IngestedVisitsRuns.ts"

describe("from 10 seeds,", () => describeVisits(10))
