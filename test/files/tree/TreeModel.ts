import { numberedName } from "#streams/files/NumberedName.ts"

interface Node {
  readonly id: string
  /** undefined: the root */
  parent: string | undefined
  name: string
  /** of the entry of the trash that it is in */
  entry: string | undefined
}

export interface ModelFile extends Node {
  /** texts of the versions, by number less one */
  readonly versions: Array<string>
}

export type ModelOutcome = "done" | "Conflict" | "BadRequest"

/** A tree of one user in memory, by the rules of the contract, that a real one is compared with. */
export class TreeModel {
  readonly directories = new Map<string, Node>()
  readonly files = new Map<string, ModelFile>()

  liveDirectories(): ReadonlyArray<Node> {
    return [...this.directories.values()].filter(({ entry }) => entry === undefined)
  }

  liveFiles(): ReadonlyArray<ModelFile> {
    return [...this.files.values()].filter(({ entry }) => entry === undefined)
  }

  pathOf({ name, parent }: Node): string {
    const above = parent === undefined ? undefined : this.directories.get(parent)
    return above === undefined ? name : `${this.pathOf(above)}/${name}`
  }

  isLive(id: string | undefined): boolean {
    return id === undefined || this.directories.get(id)?.entry === undefined
  }

  directoryNamed(parent: string | undefined, name: string): Node | undefined {
    return this.liveDirectories().find((one) => one.parent === parent && one.name === name)
  }

  fileNamed(parent: string | undefined, name: string): ModelFile | undefined {
    return this.liveFiles().find((one) => one.parent === parent && one.name === name)
  }

  isBelow(id: string | undefined, above: string): boolean {
    return id !== undefined && (id === above || this.isBelow(this.directories.get(id)?.parent, above))
  }

  /** The name that a file may have there, or undefined where it is refused; `replaced` goes to the trash. */
  nameFor(
    file: ModelFile | undefined,
    parent: string,
    name: string,
    onConflict: "fail" | "replace" | "rename"
  ): { readonly name: string; readonly replaced?: ModelFile } | undefined {
    const other = this.fileNamed(parent, name)
    if (other === undefined || other === file) return { name }
    if (onConflict === "replace") return { name, replaced: other }
    return onConflict === "fail" ? undefined : { name: this.free((one) => this.fileNamed(parent, one), name) }
  }

  free(taken: (name: string) => unknown, name: string): string {
    for (let count = 1; ; count++) {
      const candidate = numberedName(name, count)
      if (taken(candidate) === undefined) return candidate
    }
  }

  /** A directory with all that is below it and not in the trash yet. */
  trashDirectory(directory: Node, entry: string): void {
    for (const node of [...this.liveDirectories(), ...this.liveFiles()])
      if (this.isBelow(node.parent, directory.id)) node.entry = entry
    directory.entry = entry
  }

  /** All that went to the trash with an entry. */
  of(entry: string): ReadonlyArray<Node> {
    return [...this.directories.values(), ...this.files.values()].filter((node) => node.entry === entry)
  }

  purge(entry: string): void {
    for (const { id } of this.of(entry)) {
      this.directories.delete(id)
      this.files.delete(id)
    }
  }

  usedBytes(): number {
    return [...this.files.values()]
      .flatMap(({ versions }) => versions)
      .reduce((sum, text) => sum + Buffer.byteLength(text), 0)
  }

  /** A line for each directory, and for each file with its number of versions and the current text, in byte order. */
  lines(): ReadonlyArray<string> {
    return [
      ...this.liveDirectories().map((one) => `${this.pathOf(one)}/`),
      ...this.liveFiles().map(
        (file) => `${this.pathOf(file)} ${file.versions.length} ${file.versions.at(-1) ?? ""}`
      )
    ].toSorted((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)))
  }
}
