import { describeVisits } from "./IngestedVisitsRuns.ts"

describeVisits(10)
