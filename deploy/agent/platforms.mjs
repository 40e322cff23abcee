/** The version of the packages below. */
export const bunVersion = "1.4.5"

/**
 * The builds: the name of the download, and the npm package of its runtime, with the integrity from the registry. On
 * x64 it is the runtime for processors without AVX2, which runs everywhere. Windows is left out because the client's
 * boundary does not hold there, and Macs with Intel because the build would keep only the runtime's signature, which is
 * no longer valid. They use the build for Node.
 */
export const platforms = [
  {
    arch: "linux-x64",
    label: "Linux, x64",
    target: "bun-linux-x64-baseline",
    package: "@oven/bun-linux-x64-baseline",
    integrity:
      "sha512-s8yMwYcFnnrA178gji0gZbkE2WVDej/Ti1x770oPfihxyRxSMNhGhiAQNXV53aDeraZxksdvKV/RAdQBCd0qPA=="
  },
  {
    arch: "linux-arm64",
    label: "Linux, ARM 64",
    target: "bun-linux-arm64",
    package: "@oven/bun-linux-aarch64",
    integrity:
      "sha512-4BXmsSKnjOrlGWqZV4x/oWa7AVoR+B6lCXddMzOAXBIm3t50eslg9wb66gmtW1AamEQ1l1CDvmmruysEhqOWMg=="
  },
  {
    arch: "linux-x64-musl",
    label: "Linux with musl and libstdc++ (Alpine), x64",
    target: "bun-linux-x64-musl-baseline",
    package: "@oven/bun-linux-x64-musl-baseline",
    integrity:
      "sha512-cWJhU8h0+MiUgpSt99sQhjxLIIosKEcKYdtKddohokUvAuN6jKOy7g7+QDTZTXtwHxz93wL3BX+L6wXVPDUH3A=="
  },
  {
    arch: "linux-arm64-musl",
    label: "Linux with musl and libstdc++ (Alpine), ARM 64",
    target: "bun-linux-arm64-musl",
    package: "@oven/bun-linux-aarch64-musl",
    integrity:
      "sha512-XCNc+WvvMAdNNb+OWTogpy+N9wm62fkVeEVLb6how0RZhW5LPi6c7BlkeVCuWps7XjEl2saFpHFa20/1E+PAHg=="
  },
  {
    arch: "darwin-arm64",
    label: "macOS, Apple silicon",
    target: "bun-darwin-arm64",
    package: "@oven/bun-darwin-aarch64",
    integrity:
      "sha512-4MIFXHmctH2EhAxLXm2/qxNtv17dFtLJylvaOCsrgq6KSqHTs6eW5YSrJjRbJxYUJaR901fsN8JfZOa+CsWpWQ=="
  }
]
