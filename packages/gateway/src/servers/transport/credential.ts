/** What the requests of one instance carry beside the configured headers. */
export interface RequestCredential {
  /** The value of `Authorization` now; `undefined` before the first `prepare`. */
  readonly header: string | undefined
  /** Waits until the header can be used. `undefined`: it can be. @throws {UpstreamError} */
  prepare(): Promise<void> | undefined
  /** Called with a header that the server refused. Returns whether there is another one. @throws {UpstreamError} */
  renew(refused: string): Promise<boolean>
}
