import { Schema } from "effect"
import { Multipart } from "effect/http"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Authorization } from "../core/Authorization.ts"
import { ErrorBoundary } from "../core/ErrorBoundary.ts"
import { idSchema } from "../core/Ids.ts"
import {
  Conflict,
  NotFound,
  PayloadTooLarge,
  RequestTimeout,
  StorageFull,
  UnprocessableContent
} from "../core/Problem.ts"
import { writeAccess } from "./FilesAccess.ts"

export const SendTarget = Schema.Literals(["machine", "inbox", "directory"])

const text = (description: string) => Schema.optionalKey(Schema.String.annotate({ description }))

const SentFile = Schema.Struct({
  ok: Schema.Literal(true),
  fileId: idSchema("fv", "version of a file"),
  versionGroupId: idSchema("fg", "file"),
  clipboardPath: Schema.NullOr(
    Schema.String.annotate({
      description: "Where the file will be on the machine",
      examples: ["~/sharefiles/a.pdf"]
    })
  ).annotate({ description: "null where no machine is meant" })
}).annotate({ identifier: "SentFile" })

/** As the document describes it. It is served beside the Effect pipeline, by src/files/devices/SendRoutes.ts. */
export class SendFilesApi extends HttpApiGroup.make("send")
  .add(
    HttpApiEndpoint.post("sendFile", "/send", {
      payload: Schema.Struct({
        file: Multipart.SingleFileSchema,
        target: SendTarget,
        deviceId: text("Of the machine, where `target` is `machine`"),
        directoryId: text("Of the directory, where `target` is `directory`"),
        clientEncrypted: text("`true`: the bytes are encrypted, and kept as they are"),
        encryptionKeyId: text("The key that they are encrypted with")
      }).pipe(HttpApiSchema.asMultipartStream()),
      success: SentFile,
      error: [
        NotFound.plain,
        RequestTimeout.plain,
        Conflict.plain,
        PayloadTooLarge.plain,
        UnprocessableContent.plain,
        StorageFull.plain
      ]
    })
      .annotateMerge(writeAccess)
      .annotate(OpenApi.Summary, "Send a file to a machine, the Inbox or a directory")
      .annotate(
        OpenApi.Description,
        "multipart/form-data with one file. On a machine it lands in the device's folder; of the Inbox nothing is " +
          "synchronised; in a directory it is an ordinary upload. A file of the same name gets a new version."
      )
  )
  .middleware(Authorization)
  .middleware(ErrorBoundary)
  .annotateMerge(OpenApi.annotations({ title: "Sending", description: "Files for one's machines." }))
  .prefix("/api") {}
