/** What the model wrote as the arguments of a call, or what is wrong with it. */
export interface Arguments {
  readonly input: unknown
  readonly malformed: string | undefined
}

/** Reads the arguments of a call as the SDK does, which runs nothing for what is no JSON. */
export function readArguments(text: string): Arguments {
  try {
    const input: unknown = JSON.parse(text)
    if (typeof input === 'object' && input !== null && !Array.isArray(input)) return { input, malformed: undefined }
    return { input: undefined, malformed: 'must be a JSON object' }
  } catch {
    return { input: undefined, malformed: 'is not valid JSON' }
  }
}
