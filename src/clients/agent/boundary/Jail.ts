import type { Stats } from "node:fs"
import type { Parts } from "./WorkspacePath.ts"

/**
 * A directory of the workspace that is held open. On Linux every operation under `at` happens in this very directory,
 * despite renames and links meanwhile.
 */
export interface HeldDirectory {
  /** where it is, free of links */
  readonly parts: Parts
  /** a path that reaches the directory itself */
  readonly self: string
  /** its open file */
  readonly fd: number
  /** a path that reaches `name` in it; `name` has no slash */
  at(name: string): string
  /** opens a directory in it, never through a link; errors are the system's */
  enter(name: string): HeldDirectory
  /** throws when the directory, or what was opened in it, is not what its path leads to (nothing to do where it is held) */
  verify(opened?: { readonly name: string; readonly stats: Stats }): void
  close(): void
}

/** The opening of a workspace's directories on this system. */
export interface Jail {
  /** absolute, free of links */
  readonly root: string
  /** how another thread of this process opens the same jail */
  readonly handle: JailHandle
  enterRoot(): HeldDirectory
  close(): void
}

export type JailHandle =
  | { readonly kind: "linux"; readonly root: string; readonly fd: number }
  | { readonly kind: "portable"; readonly root: string }
