import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Model } from "effect/schema"
import { Authorization } from "../core/Authorization.ts"
import { ErrorBoundary } from "../core/ErrorBoundary.ts"
import { idSchema, PathId } from "../core/Ids.ts"
import { JsonBody } from "../core/JsonBody.ts"
import { given, hidden, made, madeAt, maybeGiven, shape } from "../core/Noun.ts"
import { Conflict, NotFound } from "../core/Problem.ts"
import { line } from "../core/Text.ts"
import { TimestampOfDate } from "../core/Timestamp.ts"
import { DeviceHeader } from "./DeviceHeader.ts"
import { fullAccess } from "./FilesAccess.ts"

export const DeviceId = idSchema("dev", "device")

export const DevicePlatform = Schema.Literals(["desktop", "mobile", "cli", "web"])

export const DeviceName = line(1, 100)

/** Source: contract/files#devices. */
export const syncRootDefault = "~/sharefiles"

/** The header by which a request says from which device it comes. */
export const deviceHeader = "x-device-id"

const ofServer = Model.FieldOnly(["select", "insert", "update"])

/** A row of `devices`. Source: contract/files#devices. */
export class DeviceRow extends Model.Class<DeviceRow>("DeviceRow")({
  id: made(DeviceId),
  user_id: hidden,
  name: given(Schema.String, DeviceName),
  platform: Model.FieldExcept(["update", "jsonUpdate"])(DevicePlatform),
  syncRoot: maybeGiven(
    Schema.String.annotate({ description: "The device's own folder of what it synchronises" }),
    line(1, 1_024),
    { default: syncRootDefault }
  ),
  /** to the minute */
  lastSeenAt: Model.Field({
    select: Schema.Date,
    insert: Schema.Date,
    update: Schema.Date,
    json: TimestampOfDate.annotate({ description: "To the minute, by requests with `X-Device-Id`" })
  }),
  createdAt: madeAt,
  /** the key that it got by logging in */
  key_id: ofServer(Schema.NullOr(Schema.String)),
  /** the hidden directory of what was sent to it */
  directory_id: ofServer(Schema.NullOr(Schema.String))
}) {}

export const Device = shape("Device", DeviceRow.json, "A machine or browser that files are synchronised with")
export const NewDevice = shape("NewDevice", DeviceRow.jsonCreate)
export type NewDevice = typeof NewDevice.Type
export const DeviceChange = shape("DeviceChange", DeviceRow.jsonUpdate)
export type DeviceChange = typeof DeviceChange.Type

const one = { params: { id: PathId } }

/** Devices of the caller. Source: contract/files#devices. */
export class DevicesApi extends HttpApiGroup.make("devices")
  .add(
    HttpApiEndpoint.get("listDevices", "/", {
      success: Schema.Struct({ devices: Schema.Array(Device) }).annotate({
        identifier: "DeviceList",
        description: "One's own, oldest first"
      })
    }).annotate(OpenApi.Summary, "List one's devices"),
    HttpApiEndpoint.post("createDevice", "/", {
      payload: NewDevice,
      success: Schema.Struct({ id: DeviceId }).annotate({ identifier: "CreatedDevice" }),
      error: Conflict.plain
    })
      .middleware(JsonBody)
      .annotate(OpenApi.Summary, "Register a device")
      .annotate(OpenApi.Description, "A user has at most 100 devices (409)."),
    HttpApiEndpoint.patch("updateDevice", "/:id", {
      ...one,
      payload: DeviceChange,
      success: Device,
      error: NotFound.plain
    })
      .middleware(JsonBody)
      .annotate(OpenApi.Summary, "Change a device's name or folder"),
    HttpApiEndpoint.delete("deleteDevice", "/:id", {
      ...one,
      success: Schema.Struct({ success: Schema.Literal(true) }).annotate({
        identifier: "DeletedDevice",
        description: "The key that it got by logging in works nowhere within a second"
      }),
      error: [NotFound.plain, Conflict.plain]
    })
      .annotate(OpenApi.Summary, "Delete a device")
      .annotate(
        OpenApi.Description,
        "Revokes the key that the device got by logging in; 409 where that is the last key of the last administrator. Files that were sent to the device go to the trash."
      )
  )
  .middleware(DeviceHeader)
  .middleware(Authorization)
  .middleware(ErrorBoundary)
  .annotateMerge(fullAccess)
  .annotateMerge(
    OpenApi.annotations({ title: "Devices", description: "Machines and browsers that synchronise files." })
  )
  .prefix("/api/devices") {}
