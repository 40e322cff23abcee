import { Argument, type Command, Flag } from "effect/cli"
import { DevicePlatform } from "#schemas/files/Device.ts"
import { id, noun, optional, verb } from "#src/cli/Noun.ts"
import { tableOf } from "#src/cli/Output.ts"

const device = id("Id of the device (dev_…)")
const name = optional(Flag.String("name"), "Another name")
const syncRoot = optional(
  Flag.String("sync-root"),
  "The device's own folder of what it synchronises; default: ~/sharefiles"
)

export const devices: Command.Command.Any = noun(
  "devices",
  "List, register and delete devices that files go to",
  [
    verb(
      "list",
      "List one's devices",
      {},
      (client) => client.devices.listDevices(),
      (answer) => tableOf(["id", "name", "platform", "syncRoot", "lastSeenAt", "createdAt"], answer.devices)
    ),
    verb(
      "create",
      "Register a device",
      {
        name: Argument.String("name").pipe(Argument.withDescription("Name to show")),
        platform: Flag.Literals("platform", DevicePlatform.literals).pipe(Flag.withDefault("desktop")),
        syncRoot
      },
      (client, payload) => client.devices.createDevice({ payload }),
      (made) => `Registered ${made.id}`
    ),
    verb(
      "update",
      "Change a device's name or folder",
      { ...device, name, syncRoot },
      (client, { id: deviceId, ...payload }) =>
        client.devices.updateDevice({ params: { id: deviceId }, payload }),
      (changed) => `${changed.id} is ${changed.name}, with ${changed.syncRoot}`
    ),
    verb(
      "delete",
      "Delete a device; the key that it got by logging in ends with it",
      device,
      (client, params) => client.devices.deleteDevice({ params }),
      (_, given) => `Deleted ${given.id}`
    )
  ]
)
