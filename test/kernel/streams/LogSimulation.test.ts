import { describe } from "@effect/vitest"
import { describeLog } from "./LogSimulation.ts"

describe("the durable log under a tenth of the seeded faults", () => describeLog(100))
