// The cards: what each pipeline does now, and its buttons. A card is made once and then changed in place, so that clicks
// count, the focus stays and text stays selected.
import { element, setAttribute, setText } from "./dom.js";

class Card {
  constructor(name, actions) {
    this.name = name;
    this.actions = actions;
    this.offers = new Map(); // the newest word on each button, by its Dag
    this.kind = element("span", { class: "kind" });
    this.sentence = element("p", { class: "sentence" });
    this.alarms = element("ul", { class: "alarms" });
    this.generator = element("p", { class: "faint" });
    this.whyNot = element("p", { class: "faint", id: `why-not-${name}` });
    this.plots = element("button", { type: "button" }, "Plots");
    this.plots.addEventListener("click", () => actions.choose(name));
    this.row = element("p", { class: "buttons" }, this.plots);
    const title = element("h2", { "aria-live": "polite", "aria-atomic": "true" }, name, " ", this.kind); // a change is said aloud
    this.root = element("section", { "aria-label": `Pipeline ${name}` }, title, this.sentence, this.alarms, this.generator, this.row, this.whyNot);
  }

  show(state, chosen) {
    this.state = state;
    setAttribute(this.root, "class", state.is_well ? "card" : "card ill");
    setText(this.kind, state.kind);
    setText(this.sentence, state.sentence);
    const alarms = state.alarms ?? [];
    while (this.alarms.children.length > alarms.length) this.alarms.lastChild.remove();
    alarms.forEach((line, place) => setText(this.alarms.children[place] ?? this.alarms.appendChild(element("li")), line));
    setText(this.generator, state.generator ? `The demo's generator ${state.generator}.` : "");
    for (const offer of state.buttons) this.offer(offer);
    setText(this.whyNot, [...new Set(state.buttons.map((offer) => offer.why_not).filter(Boolean))].join(" "));
    for (const each of [this.alarms, this.generator, this.whyNot]) each.hidden = !each.textContent;
    setAttribute(this.plots, "aria-pressed", String(this.name === chosen));
  }

  offer(offer) {
    let button = this.row.querySelector(`[data-dag="${CSS.escape(offer.dag)}"]`);
    if (!button) {
      button = element("button", { type: "button", "data-dag": offer.dag }, offer.label);
      button.addEventListener("click", () => this.actions.press(this.offers.get(offer.dag)));
      this.plots.before(button);
    }
    this.offers.set(offer.dag, offer);
    setAttribute(button, "aria-disabled", offer.why_not ? "true" : null); // it keeps the focus, so that its reason can be read
    setAttribute(button, "aria-describedby", offer.why_not ? this.whyNot.id : null);
    setAttribute(button, "title", offer.why_not || null);
  }

  doubt() {
    setAttribute(this.root, "class", "card unknown");
    setText(this.kind, "not known");
    setText(this.sentence, `Last known: ${this.state.sentence}`);
  }
}

export class Cards {
  constructor(place, actions) {
    this.place = place;
    this.actions = actions;
    this.cards = new Map();
  }

  show(states, chosen) {
    const names = states.map((state) => state.name);
    for (const [name, card] of this.cards) if (!names.includes(name)) { card.root.remove(); this.cards.delete(name); }
    states.forEach((state, place) => {
      if (!this.cards.has(state.name)) this.cards.set(state.name, new Card(state.name, this.actions));
      const card = this.cards.get(state.name);
      card.show(state, chosen);
      if (this.place.children[place] !== card.root) this.place.insertBefore(card.root, this.place.children[place] ?? null);
    });
    this.place.classList.remove("stale");
  }

  // The data is old: nobody knows what the pipelines do now.
  doubt() {
    for (const card of this.cards.values()) card.doubt();
    this.place.classList.add("stale");
  }
}
