import type { Refused } from "../api/Refused.ts"

/** Whether a key's scopes leave a part of the room closed: the part says so itself, and nothing waits for it. */
export const isClosed = ({ status }: Pick<Refused, "status">): boolean => status === 403
