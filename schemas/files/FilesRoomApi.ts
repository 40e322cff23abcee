import { HttpApi } from "effect/http-api"
import { strictBodies } from "../core/StrictBodies.ts"
import { CliLoginApi } from "./CliLogin.ts"
import { DevicesApi } from "./Device.ts"
import { DirectoriesApi } from "./Directory.ts"
import { ShareLinksApi } from "./ShareLink.ts"
import { StoredFilesApi } from "./StoredFile.ts"
import { SyncApi } from "./Sync.ts"
import { TrashApi } from "./Trash.ts"

/** The endpoints of shared files that pass the Effect pipeline. */
export class FilesRoomApi extends HttpApi.make("signalbox")
  .add(DirectoriesApi)
  .add(StoredFilesApi)
  .add(TrashApi)
  .add(DevicesApi)
  .add(CliLoginApi)
  .add(SyncApi)
  .add(ShareLinksApi)
  .annotate(HttpApi.PayloadParseOptions, strictBodies) {}
