/** The credential of one instance's requests, in addition to the configured headers. */
export interface RequestCredential {
  /** The current value of `Authorization`; `undefined` before the first `prepare`. */
  readonly header: string | undefined
  /** Waits until the header is ready. `undefined`: it is ready. @throws {UpstreamError} */
  prepare(): Promise<void> | undefined
  /** Called with a header that the server refused. Returns whether another one is ready. @throws {UpstreamError} */
  renew(refused: string): Promise<boolean>
}
