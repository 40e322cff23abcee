import { HttpApi } from "effect/http-api"
import { strictBodies } from "../core/StrictBodies.ts"

/** The endpoints of shared files that pass the Effect pipeline. */
export class FilesRoomApi extends HttpApi.make("signalbox").annotate(
  HttpApi.PayloadParseOptions,
  strictBodies
) {}
