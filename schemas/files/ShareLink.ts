import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Authorization } from "../core/Authorization.ts"
import { ErrorBoundary } from "../core/ErrorBoundary.ts"
import { idSchema, PathId } from "../core/Ids.ts"
import { JsonBody } from "../core/JsonBody.ts"
import { Conflict, NotFound } from "../core/Problem.ts"
import { integer, line } from "../core/Text.ts"
import { Timestamp } from "../core/Timestamp.ts"
import { fullAccess } from "./FilesAccess.ts"

const VersionId = idSchema("fv", "version of a file")
const DirectoryId = idSchema("dir", "directory")

/** a hundred years */
const minutesMax = 52_560_000
const usesMax = 1_000_000
const minutesExpected = `a number above 0, at most ${minutesMax}`
const passwordExpected = "text of 1 to 256 characters"

const maybe = <S extends Schema.Top>(schema: S, description: string) =>
  Schema.optionalKey(Schema.NullOr(schema).annotate({ description }))

/** Null is as if it were absent. Source: contract/files#links. */
export const NewShareLink = Schema.Struct({
  fileId: maybe(VersionId, "A version of the file that the link leads to; this or `directoryId`"),
  directoryId: maybe(DirectoryId, "The directory that the link leads to, as an archive"),
  singleUse: maybe(Schema.Boolean, "One download; `maxRequests` goes before it"),
  maxRequests: maybe(integer(1, usesMax), "Downloads; absent: without a limit"),
  expiresInMinutes: maybe(
    Schema.Finite.check(
      Schema.makeFilter((minutes: number) => minutes > 0 && minutes <= minutesMax, {
        expected: minutesExpected
      })
    ),
    `Minutes after which the link has expired, fractions too: ${minutesExpected}; absent: never`
  ),
  password: maybe(
    Schema.String.check(
      Schema.makeFilter((text: string) => text.length >= 1 && [...text].length <= 256, {
        expected: passwordExpected
      })
    ),
    `Asked for at each download: ${passwordExpected}`
  ),
  label: maybe(line(1, 200), "Shown to its owner alone"),
  pinned: maybe(Schema.Boolean, "This version, also when another one becomes current; of a file")
}).annotate({
  identifier: "NewShareLink",
  examples: [{ fileId: "fv_4fJ2mQ0sXb7RkT1zYw8aLc", singleUse: true, expiresInMinutes: 1440 }]
})
export type NewShareLink = typeof NewShareLink.Type

const linkFields = {
  token: Schema.String.annotate({
    description: "22 letters and digits; who has it has the link",
    examples: ["4fJ2mQ0sXb7RkT1zYw8aLc"]
  }),
  url: Schema.String.annotate({
    description: "The address to hand on",
    examples: ["https://files.example.com/direct/4fJ2mQ0sXb7RkT1zYw8aLc"]
  }),
  expiresAt: Schema.NullOr(Timestamp),
  singleUse: Schema.Boolean.annotate({ description: "It works for one download" }),
  passwordProtected: Schema.Boolean,
  fileId: Schema.NullOr(VersionId).annotate({
    description: "The version that it leads to now; null: a directory, or nothing any more"
  }),
  versionGroupId: Schema.NullOr(Schema.String.annotate({ examples: ["fg_2sJH7aQmXy4TzWcVbN8kLp"] })),
  directoryId: Schema.NullOr(DirectoryId),
  name: Schema.NullOr(Schema.String.annotate({ examples: ["report.pdf"] })).annotate({
    description: "Of what it leads to; null: that is gone, and the link is 404"
  }),
  maxRequests: Schema.NullOr(Schema.Int),
  uses: Schema.Int.annotate({ description: "Downloads so far" }),
  pinned: Schema.Boolean,
  label: Schema.NullOr(Schema.String.annotate({ examples: ["For Ada"] })),
  createdAt: Timestamp
} as const

export const ShareLink = Schema.Struct(linkFields).annotate({ identifier: "ShareLink" })
/** as JSON */
export type ShareLink = typeof ShareLink.Encoded

/** A download, whatever number of requests it took. */
const Download = Schema.Struct({
  startedAt: Timestamp,
  bytes: Schema.Int.annotate({ description: "Sent so far, over all of its requests" }),
  complete: Schema.Boolean.annotate({ description: "The last byte was sent" }),
  address: Schema.String.annotate({ description: "The client's", examples: ["203.0.113.7"] }),
  agent: Schema.String.annotate({
    description: "Its User-Agent, 256 characters at most",
    examples: ["curl/8.14.1"]
  })
}).annotate({ identifier: "Download" })

const SharedLink = Schema.Struct({
  ...linkFields,
  downloads: Schema.Array(Download).annotate({
    description: "The last 100 of 90 days, the newest first"
  })
}).annotate({ identifier: "ShareLinkWithDownloads" })
export type SharedLink = typeof SharedLink.Encoded

export const linkListLimits = { limitDefault: 100, limitMax: 1_000 } as const

const one = {
  params: { token: PathId.annotate({ description: "The link's token" }) },
  error: NotFound.plain
}

/** Links to files and directories. Source: contract/files#links. */
export class ShareLinksApi extends HttpApiGroup.make("shareLinks")
  .add(
    HttpApiEndpoint.post("createShareLink", "/share-links", {
      payload: NewShareLink,
      success: ShareLink,
      error: [NotFound.plain, Conflict.plain]
    })
      .middleware(JsonBody)
      .annotate(OpenApi.Summary, "Share a file or a directory by a link")
      .annotate(
        OpenApi.Description,
        "`fileId` or `directoryId`. A user has at most 10,000 links that have not expired (409)."
      ),
    HttpApiEndpoint.get("listShareLinks", "/share-links", {
      query: {
        fileId: Schema.optionalKey(
          VersionId.annotate({ description: "Links to the file of this version alone" })
        ),
        directoryId: Schema.optionalKey(DirectoryId),
        limit: Schema.optionalKey(
          integer(1, linkListLimits.limitMax).annotate({
            description: "Page size",
            default: linkListLimits.limitDefault
          })
        ),
        cursor: Schema.optionalKey(Schema.String.annotate({ description: "That of the page before" }))
      },
      success: Schema.Struct({
        links: Schema.Array(ShareLink),
        cursor: Schema.NullOr(
          Schema.String.annotate({ examples: ["1795439400000-9f86d081884c7d659a2feaa0c55ad015"] })
        ).annotate({ description: "Of the next page; null: the last" })
      }),
      error: NotFound.plain
    }).annotate(OpenApi.Summary, "List one's links, the newest first"),
    HttpApiEndpoint.get("readShareLink", "/share-links/:token", { ...one, success: SharedLink }).annotate(
      OpenApi.Summary,
      "Read a link and its downloads"
    ),
    HttpApiEndpoint.delete("deleteShareLink", "/share-links/:token", {
      ...one,
      success: Schema.Struct({ success: Schema.Literal(true) })
    })
      .annotate(OpenApi.Summary, "Revoke a link")
      .annotate(OpenApi.Description, "At once, and within a second where it is being downloaded.")
  )
  .annotateMerge(fullAccess)
  .middleware(Authorization)
  .middleware(ErrorBoundary)
  .prefix("/api") {}
