import { itPlays } from "./RandomCalls.ts"

itPlays(200)
