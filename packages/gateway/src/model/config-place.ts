/** A place in a configuration file. Lines and columns start at 1. */
export interface ConfigPlace {
  readonly file: string
  readonly line: number
  readonly column: number
}
