import type { Page } from 'playwright-core'

/** The contrast of a text with its background (WCAG 2.2, 1.4.3), as the browser draws it. */
export interface Contrast {
  readonly text: string
  readonly ratio: number
}

/** Measures every text of an element that has the attribute `data-specimen`. */
export function measureContrasts(page: Page): Promise<readonly Contrast[]> {
  return page.evaluate(() => {
    type Colour = readonly [number, number, number, number]
    const specimen = document.querySelector('[data-specimen]')
    if (!specimen) throw new Error('there is no specimen')
    const texts = [specimen, ...specimen.querySelectorAll('*')].filter(
      (element) =>
        !element.closest('.unseen') &&
        [...element.childNodes].some(({ nodeType, textContent }) => nodeType === 3 && textContent?.trim() !== ''),
    )
    return texts.map((element) => ({ text: element.textContent ?? '', ratio: ratioOf(element) }))

    function ratioOf(element: Element): number {
      const back = backgroundOf(element)
      const [r, g, b, alpha] = parse(getComputedStyle(element).color)
      const light = luminance(over([r, g, b, alpha * opacityOf(element)], back))
      const dark = luminance(back)
      return (Math.max(light, dark) + 0.05) / (Math.min(light, dark) + 0.05)
    }
    function backgroundOf(element: Element): Colour {
      const layers: Colour[] = []
      for (let at: Element | null = element; at; at = at.parentElement) {
        const [r, g, b, alpha] = parse(getComputedStyle(at).backgroundColor)
        layers.push([r, g, b, alpha * opacityOf(at)])
      }
      return layers.reduceRight<Colour>((below, layer) => over(layer, below), [255, 255, 255, 1])
    }
    function opacityOf(element: Element): number {
      let opacity = 1
      for (let at: Element | null = element; at; at = at.parentElement) opacity *= Number(getComputedStyle(at).opacity)
      return opacity
    }
    function over([r, g, b, alpha]: Colour, [r2, g2, b2]: Colour): Colour {
      return [r * alpha + r2 * (1 - alpha), g * alpha + g2 * (1 - alpha), b * alpha + b2 * (1 - alpha), 1]
    }
    function luminance(colour: Colour): number {
      const [r = 0, g = 0, b = 0] = colour
        .slice(0, 3)
        .map((value) => value / 255)
        .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
      return 0.2126 * r + 0.7152 * g + 0.0722 * b
    }
    function parse(text: string): Colour {
      const [r, g, b, alpha = 1] = [...text.matchAll(/[\d.]+(?:e-\d+)?/g)].map(([number]) => Number(number))
      const scale = /^rgba?\(/.test(text) ? 1 : text.startsWith('color(srgb ') ? 255 : Number.NaN
      if (r === undefined || g === undefined || b === undefined || Number.isNaN(scale))
        throw new Error(`a colour of another form: ${text}`)
      return [r * scale, g * scale, b * scale, alpha]
    }
  })
}
