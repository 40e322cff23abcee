import { accounts } from "./accounts/Room.ts"
import { agents } from "./agents/Room.ts"
import { analytics } from "./analytics/Room.ts"
import { files } from "./files/Room.ts"
import { llm } from "./llm/Room.ts"
import { mail } from "./mail/Room.ts"
import { notify } from "./notify/Room.ts"

/** All rooms. The server, `/readyz`, the methods of paths, `ROOMS`, the migrations and the documentation fold over it. */
export const rooms = [accounts, analytics, llm, agents, notify, files, mail] as const

export type RoomName = (typeof rooms)[number]["name"]
