/** RFC 9110 §5.1 and §5.5. */
const NAME = /^[!#$%&'*+\-.^_`|~\w]+$/
const VALUE = /^[\t\x20-\x7E\x80-\xFF]*$/

/** Returns headers as they are sent. They are alternating names and values. @throws {TypeError} for one that is invalid */
export function headerText(headers: readonly string[]): string {
  let text = ''
  for (let i = 0; i < headers.length; i += 2) {
    const [name = '', value = ''] = [headers[i], headers[i + 1]]
    if (!NAME.test(name) || !VALUE.test(value)) throw new TypeError(`invalid header ${JSON.stringify(name)}`)
    text += `${name}: ${value}\r\n`
  }
  return text
}

const kept = new WeakMap<readonly string[], string>()

/** Returns the same text, and keeps it with the headers: those of a session are the same in each of its requests. */
export function keptHeaderText(headers: readonly string[]): string {
  let text = kept.get(headers)
  if (text === undefined) kept.set(headers, (text = headerText(headers)))
  return text
}
