import type { UploadPlace } from "./Upload.ts"

/** The bucket of files that are uploaded to the root, which has directories only. */
const defaultBucket = "uploads"

/** Source: contract/files#names. */
const isBucketName = (name: string): boolean =>
  /^[a-zA-Z0-9._-]{1,100}$/.test(name) && name !== "." && name !== ".."

/** At the root, a folder becomes a bucket where its name can be one's. */
const placeAtRoot = (path: string): UploadPlace => {
  const [first = "", ...others] = path.split("/")
  return others.length > 0 && isBucketName(first)
    ? { directoryId: undefined, bucket: first, path: others.join("/") }
    : { directoryId: undefined, bucket: defaultBucket, path }
}

/** The place of a file that was chosen by a path, in a directory; undefined: the root. */
export const placeOf = (path: string, directory: { readonly id: string } | undefined): UploadPlace =>
  directory === undefined
    ? placeAtRoot(path.normalize("NFC"))
    : { directoryId: directory.id, bucket: undefined, path: path.normalize("NFC") }
