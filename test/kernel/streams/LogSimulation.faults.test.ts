import { describe } from "@effect/vitest"
import { describeLog } from "./LogSimulation.ts"

describe("the durable log under seeded faults", () => describeLog(1_000))
