import type { Device as Row } from "#schemas/files/Device.ts"

/** A device, as the API answers it. */
export type Device = typeof Row.Encoded

export interface DeviceList {
  readonly devices: ReadonlyArray<Device>
}

export const path = "/api/devices"

export const platforms: Readonly<Record<Device["platform"], string>> = {
  desktop: "computer",
  mobile: "phone or tablet",
  cli: "command line",
  web: "browser"
}
