import type { Ask } from "../../api/Ask.ts"
import type { Entry } from "../Types.ts"

/** A file or directory in the trash: its kind, and its own id. */
export interface Restorable {
  readonly kind: Entry["kind"]
  readonly itemId: string
}

/** Brings back what was deleted. `isRenamed`: under another name where its own is taken. */
export const restore = (ask: Ask, { itemId, kind }: Restorable, isRenamed = false): Promise<unknown> => {
  const query = isRenamed ? "?onConflict=rename" : ""
  return ask(`/api/${kind === "file" ? "files" : "directories"}/${itemId}/restore${query}`, {
    method: "POST"
  })
}
