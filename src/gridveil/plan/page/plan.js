"use strict";
// The page of `gridveil plan`: it sends the choice to its own server and shows the answer.
(() => {
  const $ = (id) => document.getElementById(id);
  const WAIT = 250; // ms between questions while runs are being made
  let start = null; // what there is to choose from
  let kind = null; // the chosen kind
  let asked = 0; // questions so far: only the last one's answer is shown
  let timer = 0;
  let shownPicture = "";

  const make = (tag, text, className) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  };
  const number = (value) =>
    value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);

  // -- the controls ------------------------------------------------------------------------------
  const options = (box, group, all, chosen, changed) => {
    $(box).replaceChildren(
      ...all.map((one) => {
        const label = make("label", undefined, "option");
        const input = make("input");
        input.type = "radio";
        input.name = group;
        input.value = one.name;
        input.checked = one.name === chosen;
        input.addEventListener("change", () => changed(one.name));
        label.append(input, make("b", one.title));
        if (one.text) label.append(make("span", one.text, "small"));
        return label;
      }),
    );
  };
  const picked = (group) => document.querySelector(`input[name=${group}]:checked`).value;
  const parameter = () => kind.parameters.find((one) => one.name === $("parameter").value);

  const nearest = (values, text) => {
    const wanted = Number(text);
    const gaps = values.map((value) => Math.abs(Math.log(Number(value) / wanted)));
    return gaps.indexOf(Math.min(...gaps));
  };
  const pair = (name, values, value) => {
    const slider = $(`${name}-slider`);
    slider.max = values.length - 1;
    $(name).value = value;
    slider.value = nearest(values, value);
    slider.setAttribute("aria-valuetext", value);
    slider.oninput = () => {
      $(name).value = values[slider.value];
      slider.setAttribute("aria-valuetext", $(name).value);
      ask();
    };
    $(name).oninput = () => {
      if (Number($(name).value) > 0) slider.value = nearest(values, $(name).value);
      ask();
    };
  };

  const chooseParameter = () => {
    const one = parameter();
    $("alpha-unit").textContent = one.unit;
    $("alpha-text").textContent = one.meaning;
    pair("alpha", one.alphas, one.alpha);
    $("metrics").replaceChildren(
      ...one.metrics.map((metric) => {
        const box = make("div");
        const term = make("dt");
        term.append(make("span", metric.title, "name"), make("br"), metric.text);
        const value = make("dd", "\u2026");
        value.id = `metric-${metric.name}`;
        box.append(term, value);
        return box;
      }),
    );
    shownPicture = "";
    $("picture").replaceChildren(make("p", "The first run is being made\u2026", "small"));
    $("picture").setAttribute("aria-label", "No release of the stand-in yet.");
    for (const id of ["legend", "sweep", "shares", "share-names"]) $(id).replaceChildren();
    $("sweep-figure").hidden = true;
  };
  const chooseKind = (name) => {
    kind = start.kinds.find((one) => one.name === name);
    $("parameter").replaceChildren(...kind.parameters.map((one) => new Option(one.title, one.name)));
    $("parameter-set").hidden = kind.parameters.length < 2;
    options("methods", "method", kind.methods, kind.methods[0].name, ask);
    $("size-label").textContent = `Stand-in: ${kind.size.counts}`;
    $("size").value = kind.size.first;
    $("size").disabled = kind.size.least === kind.size.most;
    $("stand-in").textContent = kind.stand_in;
    $("fields").replaceChildren(
      ...kind.fields.map((one) => {
        const box = make("div", undefined, "control");
        const label = make("label", one.title);
        const input = make("input");
        const hint = make("p", one.hint, "small");
        input.id = `field-${one.name}`;
        label.htmlFor = input.id;
        hint.id = `${input.id}-text`;
        input.setAttribute("aria-describedby", hint.id);
        input.value = one.value;
        input.spellcheck = false;
        input.addEventListener("input", ask);
        box.append(label, input, hint);
        return box;
      }),
    );
    chooseParameter();
  };

  // -- questions and answers ---------------------------------------------------------------------
  const question = () => ({
    kind: kind.name,
    parameter: $("parameter").value,
    method: picked("method"),
    alpha: $("alpha").value,
    epsilon: $("epsilon").value,
    size: $("size").value,
    dataset: $("dataset").value,
    fields: Object.fromEntries(kind.fields.map((one) => [one.name, $(`field-${one.name}`).value])),
  });
  const ask = () => {
    asked += 1;
    clearTimeout(timer);
    timer = setTimeout(send, 120, asked);
  };
  const send = async (mine) => {
    let answer;
    try {
      const reply = await fetch("api/plan", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(question()),
      });
      answer = reply.ok
        ? await reply.json()
        : { problem: await reply.text(), remedy: "Start gridveil plan again." };
    } catch {
      answer = {
        problem: "gridveil plan does not answer any more.",
        remedy: "Start it again in your terminal, and open the address that it prints.",
      };
    }
    if (mine !== asked) return; // something else was chosen in the meantime
    show(answer);
    if (!answer.problem && !answer.accuracy.done) timer = setTimeout(send, WAIT, mine);
  };

  const show = (answer) => {
    const problem = answer.problem || (answer.accuracy && answer.accuracy.problem);
    $("problem").hidden = !problem;
    $("problem").textContent = problem ? [problem, answer.remedy].filter(Boolean).join(" ") : "";
    if (answer.problem) {
      $("status").textContent = "";
      showCommand({ command: null, command_problem: "" });
      return;
    }
    showAccuracy(answer.accuracy);
    showGuarantee(answer.guarantee);
    $("budget").textContent = answer.budget.text;
    $("budget").className = `budget ${answer.budget.state}`;
    showCommand(answer);
  };
  const showAccuracy = (accuracy) => {
    $("status").textContent =
      accuracy.runs < accuracy.of ? `${accuracy.runs} of ${accuracy.of} runs` : `${accuracy.of} runs`;
    $("progress").max = accuracy.of;
    $("progress").value = accuracy.runs;
    for (const one of accuracy.metrics) {
      const box = $(`metric-${one.name}`);
      if (one.mean === null) {
        box.textContent = accuracy.runs ? "not defined" : "\u2026";
        continue;
      }
      const unit = parameter().metrics.find((metric) => metric.name === one.name).unit;
      box.replaceChildren(number(one.mean), " ", make("small", unit));
      box.append(make("span", `${number(one.low)} to ${number(one.high)}`, "range"));
    }
    if (accuracy.picture && accuracy.picture.source !== shownPicture) {
      shownPicture = accuracy.picture.source;
      showPicture(accuracy.picture);
    }
    $("sweep-figure").hidden = !accuracy.sweep;
    if (accuracy.sweep) $("sweep").innerHTML = accuracy.sweep;
    $("shares").replaceChildren(
      ...accuracy.shares.map((one, place) => {
        const part = make("span", undefined, `c${(place % 4) + 1}`);
        part.style.width = `${one.percent}%`;
        return part;
      }),
    );
    const words = accuracy.shares.map((one) => `${one.query} ${number(one.percent)}%`);
    $("shares").setAttribute("aria-label", words.join(", ") || "Not known yet.");
    $("share-names").replaceChildren(
      ...words.map((text, place) => {
        const item = make("li");
        item.append(make("span", undefined, `swatch c${(place % 4) + 1}`), text);
        return item;
      }),
    );
  };
  const showPicture = (picture) => {
    // Markup that the server drew: its texts are escaped there, and the policy runs no script in it.
    if (picture.source.startsWith("<svg")) {
      $("picture").innerHTML = picture.source;
    } else {
      const dark = matchMedia("(prefers-color-scheme: dark)").matches;
      const image = make("img");
      image.src = (dark && picture.dark) || picture.source;
      image.alt = "";
      $("picture").replaceChildren(image);
    }
    $("picture").setAttribute("aria-label", picture.alt);
    $("legend").replaceChildren(
      ...picture.legend.map(([colour, words]) => {
        const item = make("li");
        item.append(make("span", undefined, `swatch ${colour}`), words);
        return item;
      }),
    );
  };
  const showGuarantee = (guarantee) => {
    $("words").replaceChildren(...guarantee.words.map((text) => make("p", text)));
    $("changes").replaceChildren(
      ...guarantee.changes.map((one) => {
        const row = make("tr");
        const change = make("th", one.change);
        change.scope = "row";
        row.append(change);
        for (const [name, text] of [
          ["Epsilon", one.epsilon],
          ["Odds change by at most", one.factor],
          ["From 50% sure to at most", one.certainty],
        ]) {
          const cell = make("td", text, "number");
          cell.dataset.name = name;
          row.append(cell);
        }
        return row;
      }),
    );
  };
  const showCommand = (answer) => {
    const line = answer.command;
    $("command").textContent = line || answer.command_problem;
    $("copy").disabled = !line;
    if ($("copied").dataset.line !== line) $("copied").textContent = "";
  };

  const copy = async () => {
    const line = $("command").textContent;
    try {
      await navigator.clipboard.writeText(line);
      $("copied").textContent = "Copied. Run it in a terminal, in the folder of your file.";
    } catch {
      getSelection().selectAllChildren($("command"));
      $("copied").textContent = "Selected: copy it with Ctrl+C.";
    }
    $("copied").dataset.line = line;
  };

  const begin = async () => {
    start = await (await fetch("api/start")).json();
    $("version").textContent = start.version;
    $("ledger-path").textContent = `Ledger: ${start.ledger}`;
    options("kinds", "kind", start.kinds, start.kinds[0].name, (name) => {
      chooseKind(name);
      ask();
    });
    $("kind-set").hidden = start.kinds.length < 2;
    pair("epsilon", start.epsilons, "1");
    chooseKind(start.kinds[0].name);
    for (const id of ["size", "dataset"]) $(id).addEventListener("input", ask);
    $("parameter").addEventListener("change", () => {
      chooseParameter();
      ask();
    });
    $("choice").addEventListener("submit", (event) => event.preventDefault());
    $("copy").addEventListener("click", copy);
    ask();
  };
  begin();
})();
