/** A flag of a directory or file that is there. */
export interface PlacedFlag {
  readonly type: "file" | "directory"
  /** of the directory, or of the file whatever its version */
  readonly id: string
  readonly bucketId: string
  /** within the bucket: of a directory with a slash at its end, '' of the bucket itself */
  readonly path: string
  /** false: it and what is below it are left out */
  readonly enabled: boolean
  readonly scope: "all" | "selected"
  readonly deviceIds: ReadonlyArray<string>
}

/** The path of the directory that a file or directory is in; undefined: it is a bucket. */
const parentOf = (path: string): string | undefined => {
  if (path === "") return undefined
  const end = path.endsWith("/") ? path.length - 1 : path.length
  return path.slice(0, path.lastIndexOf("/", end - 1) + 1)
}

/**
 * Tells which flag decides on a file or directory: its own, else that of the nearest directory above. Source:
 * contract/files#synchronisation.
 */
export class NearestFlags {
  private readonly ofFiles = new Map<string, PlacedFlag>()
  private readonly ofPaths = new Map<string, PlacedFlag>()
  /** decisions on directories, of paths that were asked about before */
  private readonly known = new Map<string, PlacedFlag | undefined>()

  constructor(flags: Iterable<PlacedFlag>) {
    for (const flag of flags) {
      if (flag.type === "file") this.ofFiles.set(flag.id, flag)
      else this.ofPaths.set(`${flag.bucketId} ${flag.path}`, flag)
    }
  }

  ofDirectory(bucketId: string, path: string): PlacedFlag | undefined {
    const key = `${bucketId} ${path}`
    const own = this.ofPaths.get(key)
    if (own !== undefined || this.known.has(key)) return own ?? this.known.get(key)
    const above = parentOf(path)
    const flag = above === undefined ? undefined : this.ofDirectory(bucketId, above)
    this.known.set(key, flag)
    return flag
  }

  ofFile(id: string, bucketId: string, path: string): PlacedFlag | undefined {
    return this.ofFiles.get(id) ?? this.ofDirectory(bucketId, parentOf(path) ?? "")
  }

  /** The flagged directories that are below no other flagged one: directories' flags are about nothing elsewhere. */
  outermost(): ReadonlyArray<PlacedFlag> {
    return [...this.ofPaths.values()].filter((flag) => flag.enabled && !this.isBelowFlagged(flag))
  }

  /** Whether a directory above is flagged, even if another one between leaves it out. */
  isBelowFlagged({ bucketId, path }: PlacedFlag): boolean {
    for (let above = parentOf(path); above !== undefined; above = parentOf(above))
      if (this.ofPaths.get(`${bucketId} ${above}`)?.enabled === true) return true
    return false
  }

  /** Flagged files, by their own flags. */
  files(): ReadonlyArray<PlacedFlag> {
    return [...this.ofFiles.values()].filter((flag) => flag.enabled)
  }
}

/** Whether a flag means a device; undefined: those who name none. */
export const isMeant = (flag: PlacedFlag | undefined, deviceId: string | undefined): boolean =>
  flag !== undefined &&
  flag.enabled &&
  (flag.scope === "all" || (deviceId !== undefined && flag.deviceIds.includes(deviceId)))
