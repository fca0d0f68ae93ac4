"""Which columns of XIIDM (and of files read as XIIDM) and PSS/E a release keeps."""

from __future__ import annotations

from gridveil.grid.io.released_columns.reasons import (
    COPIES,
    DISPATCH,
    EVERY,
    FACTOR,
    LOADS,
    MADE,
    NAMES,
    NOISE,
    RATED_AS,
    REACH,
    RESULTS,
    SIZE,
    STATE,
    TEXT,
    Rule,
)

_BRANCHES = "line twoWindingsTransformer threeWindingsTransformer danglingLine"
_LIMITS = "currentLimits apparentPowerLimits activePowerLimits"
_AT = "bus connectableBus node"
_ENDS = "voltageLevelId bus connectableBus node selectedOperationalLimitsGroupId"
_ON_RATING = "if given on a rating: on the system's base with three digits, no magnetising."
_PARTS = "other parts of the private load, or near a multiple of it: 0 in this release."
_REGULATED = "what a phase shifter holds is often a limit: it stays at its tap in the release."
_HELD = "a control of a flow is off: what it holds is often a limit or a result."
_LINE = (
    "one limit for a line: all of its sides and durations follow the released capacity by public "
    "ratios, 1 if none is given."
)

_OWNERS = "O1 F1 O2 F2 O3 F3 O4 F4"
_RATES = "RATEA RATEB RATEC " + " ".join(f"RATE{at}" for at in range(1, 13))
_PAIRS = "R1_2 X1_2 SBASE1_2 R2_3 X2_3 SBASE2_3 R3_1 X3_1 SBASE3_1"
_WINDINGS = " ".join(
    f"{name}{winding}"
    for winding in "123"
    for name in (
        *("WINDV", "NOMV", "ANG", "COD", "CONT", "NODE", "RMA", "RMI", "VMA", "VMI", "NTP", "TAB"),
        *("CR", "CX", "CNXA"),
    )
)
_WINDING_RATES = " ".join(f"{name}_{w}" for w in "123" for name in _RATES.split())
_CONVERTERS = " ".join(
    f"{name}_{end}"
    for end in "12"
    for name in (
        *("IBUS", "TYPE", "MODE", "DCSET", "ACSET", "ALOSS", "BLOSS", "MINLOSS", "SMAX", "IMAX"),
        *("PWF", "MAXQ", "MINQ", "VSREG", "NREG", "RMPCT"),
    )
)
_FIRST = ("RATEA", "RATE1")
_FIRST_OF = " ".join(f"{name}_{w}" for w in "123" for name in _FIRST)


def _others(rates: str, first: str) -> str:
    return " ".join(name for name in rates.split() if name not in first.split())


KEPT: dict[str, dict[str, str]] = {
    "powsybl": {
        "network": "caseDate forecastDistance sourceFormat minimumValidationLevel",
        "substation": "id name country geographicalTags tso",
        "voltageLevel": "id name nominalV lowVoltageLimit highVoltageLimit topologyKind fictitious",
        "busBreakerTopology": "",
        "nodeBreakerTopology": "",
        "bus": "id name fictitious",
        "busbarSection": "id name node fictitious",
        "switch": "id name kind retained open bus1 bus2 node1 node2 fictitious",
        "internalConnection": "node1 node2",
        "generator": f"id name energySource minP maxP ratedS voltageRegulatorOn targetP targetV "
        f"targetQ condenser fictitious {_AT}",
        "battery": f"id name targetP targetQ minP maxP fictitious {_AT}",
        "load": f"id name loadType p0 q0 fictitious {_AT}",
        "exponentialModel": "np nq",
        "zipModel": "c0p c1p c2p c0q c1q c2q",
        "regulatingTerminal": "id side",
        "terminalRef": "id side",
        "reactiveCapabilityCurve": "",
        "point": "p minQ maxQ",
        "minMaxReactiveLimits": "minQ maxQ",
        "shunt": f"id name sectionCount voltageRegulatorOn targetV targetDeadband fictitious {_AT}",
        "shuntLinearModel": "bPerSection gPerSection maximumSectionCount",
        "shuntNonLinearModel": "",
        "section": "b g",
        "staticVarCompensator": f"id name bMin bMax voltageSetpoint reactivePowerSetpoint "
        f"regulationMode regulating fictitious {_AT}",
        "vscConverterStation": f"id name voltageRegulatorOn lossFactor voltageSetpoint "
        f"reactivePowerSetpoint fictitious {_AT}",
        "lccConverterStation": f"id name lossFactor powerFactor fictitious {_AT}",
        "line": f"id name r x g1 b1 g2 b2 fictitious {_ENDS}",
        "twoWindingsTransformer": f"id name r x g b ratedU ratedS fictitious {_ENDS}",
        "threeWindingsTransformer": f"id name r x g b g1 b1 g2 b2 ratedU ratedS ratedU0 fictitious "
        f"{_ENDS}",
        "danglingLine": f"id name p0 q0 r x g b pairingKey generationMinP generationMaxP "
        f"generationVoltageRegulationOn generationTargetP generationTargetV generationTargetQ "
        f"fictitious {_ENDS}",
        "tieLine": "id name danglingLineId1 danglingLineId2 fictitious",
        "hvdcLine": "id name r nominalV convertersMode activePowerSetpoint maxP converterStation1 "
        "converterStation2 fictitious",
        "ratioTapChanger": "regulating lowTapPosition tapPosition targetDeadband "
        "loadTapChangingCapabilities regulationMode regulationValue targetV",
        "phaseTapChanger": "regulating lowTapPosition tapPosition targetDeadband regulationMode "
        "regulationValue loadTapChangingCapabilities",
        "step": "r x g b rho alpha",
        "operationalLimitsGroup": "id",
        **dict.fromkeys(_LIMITS.split(), "permanentLimit"),
        "temporaryLimit": "name acceptableDuration value fictitious",
    },
    "psse": {
        "BUS": "I NAME BASKV IDE AREA ZONE OWNER NVHI NVLO EVHI EVLO",
        "LOAD": "I ID STAT AREA ZONE PL QL IP IQ YP YQ OWNER SCALE INTRPT DGENP DGENQ DGENM "
        "LOADTYPE",
        "FIXSHUNT": "I ID STATUS GL BL",
        "GEN": f"I ID QT QB VS IREG NREG MBASE ZR ZX RT XT GTAP STAT RMPCT PT PB BASLOD {_OWNERS} "
        "WMOD WPF",
        "BRANCH": f"I J CKT R X B NAME {_RATES} GI BI GJ BJ ST MET LEN {_OWNERS}",
        "TRANSFORMER": f"I J K CKT CW CZ CM MAG1 MAG2 NMETR NAME STAT {_OWNERS} VECGRP "
        f"{_PAIRS} {_WINDINGS} {_WINDING_RATES}",
        "AREA": "I ISW NAME",
        "ZONE": "I NAME",
        "OWNER": "I NAME",
        "VSCDC": f"NAME MDC RDC {_OWNERS} {_CONVERTERS}",
        "FACTS": "NAME I J MODE VSET SHMX RMPCT OWNER VSREF FCREG NREG",
        **dict.fromkeys(("TWODC", "IMPCOR", "MSLINE", "SWSHUNT"), "numbers"),
    },
}

RULES: dict[str, tuple[Rule, ...]] = {
    "powsybl": (
        Rule(_BRANCHES, "name", "capacity", "dropped", NAMES),
        Rule(_BRANCHES, "id", "capacity", "rewritten", NAMES),
        Rule(_LIMITS, "permanentLimit", "capacity", "released", NOISE),
        Rule("temporaryLimit", "value", "capacity", "rewritten", _LINE),
        Rule("temporaryLimit", "name", "capacity", "rewritten", NAMES),
        Rule("operationalLimitsGroup", "id", "capacity", "rewritten", NAMES),
        Rule(
            _BRANCHES, "selectedOperationalLimitsGroupId", "capacity", "rewritten", NAMES, some=True
        ),
        Rule(
            "twoWindingsTransformer threeWindingsTransformer",
            "ratedS",
            "capacity",
            "dropped",
            COPIES,
        ),
        Rule("load danglingLine", "name", "load", "dropped", NAMES),
        Rule("load danglingLine", "id", "load", "rewritten", NAMES),
        Rule("load danglingLine", "p0", "load", "released", LOADS),
        Rule("load danglingLine", "q0", "load", "rewritten", FACTOR),
        Rule("load danglingLine", "q0", "reactive_load", "released", LOADS),
        Rule("generator", "name", "generator_limit cost", "dropped", NAMES),
        Rule("generator", "id", "generator_limit cost", "rewritten", NAMES),
        Rule("generator", "minP maxP", "generator_limit", "released", NOISE),
        Rule("generator", "ratedS", "generator_limit", "dropped", SIZE),
        Rule("minMaxReactiveLimits", "minQ maxQ", "generator_limit", "rewritten", REACH, some=True),
        Rule("point", "p minQ maxQ", "generator_limit", "rewritten", REACH, some=True),
        Rule("generator", "targetP", EVERY, "rewritten", DISPATCH),
        Rule(
            "generator",
            "targetQ",
            EVERY,
            "rewritten",
            "0 if it holds a voltage: " + RESULTS,
            some=True,
        ),
        Rule("phaseTapChanger", "regulating regulationMode", EVERY, "rewritten", _REGULATED),
        Rule("phaseTapChanger", "regulationValue targetDeadband", EVERY, "dropped", _REGULATED),
        Rule("ratioTapChanger", "regulating", EVERY, "rewritten", _HELD, some=True),
        Rule(
            "ratioTapChanger",
            "regulationValue targetDeadband",
            EVERY,
            "rewritten",
            f"kept if it is a voltage; {_HELD}",
            some=True,
        ),
        Rule("bus", "v angle nodes", EVERY, "dropped", STATE),
        Rule(
            f"{_BRANCHES} generator battery load shunt staticVarCompensator vscConverterStation "
            "lccConverterStation",
            "p q",
            EVERY,
            "dropped",
            RESULTS,
        ),
        Rule("ratioTapChanger phaseTapChanger", "solvedTapPosition", EVERY, "dropped", RESULTS),
        Rule("shunt", "solvedSectionCount", EVERY, "dropped", RESULTS),
        Rule("network", "id", EVERY, "dropped", TEXT),
        Rule("more", "format", EVERY, "rewritten", "a release of such a file is XIIDM."),
        Rule("more", "property alias extension", EVERY, "dropped", TEXT),
        Rule(
            "substation voltageLevel bus busbarSection switch shunt staticVarCompensator tieLine "
            "hvdcLine vscConverterStation lccConverterStation battery generator load " + _BRANCHES,
            "name geographicalTags tso pairingKey",
            EVERY,
            "rewritten",
            "kept if it is a short label, else dropped: " + TEXT,
            some=True,
        ),
    ),
    "psse": (
        Rule("BRANCH", " ".join(_FIRST), "capacity", "released", NOISE),
        Rule("BRANCH", _others(_RATES, " ".join(_FIRST)), "capacity", "rewritten", RATED_AS),
        Rule("TRANSFORMER", _FIRST_OF, "capacity", "released", NOISE),
        Rule("TRANSFORMER", _others(_WINDING_RATES, _FIRST_OF), "capacity", "rewritten", RATED_AS),
        Rule(
            "TRANSFORMER",
            f"CZ CM MAG1 MAG2 {_PAIRS}",
            "capacity",
            "rewritten",
            _ON_RATING,
            some=True,
        ),
        Rule("BRANCH TRANSFORMER", "NAME", "capacity", "dropped", NAMES),
        Rule("TRANSFORMER", "VECGRP", "capacity", "dropped", TEXT),
        Rule("VSCDC", "SMAX_1 IMAX_1 SMAX_2 IMAX_2", "capacity", "dropped", COPIES),
        Rule("BRANCH", "LEN", "capacity", "dropped", "lengths tell the rating of a known type."),
        Rule("LOAD", "PL", "load", "released", LOADS),
        Rule("LOAD", "QL", "load", "rewritten", FACTOR),
        Rule("LOAD", "QL", "reactive_load", "released", LOADS),
        Rule("LOAD", "IP IQ YP YQ DGENP DGENQ", "load", "dropped", _PARTS),
        Rule("LOAD", "LOADTYPE", "load", "dropped", TEXT),
        Rule("GEN", "PT PB", "generator_limit", "released", NOISE),
        Rule("GEN", "QT QB", "generator_limit", "rewritten", REACH),
        Rule("GEN", "MBASE ZR ZX RT XT GTAP", "generator_limit", "dropped", SIZE),
        Rule("GEN", "WMOD WPF", "generator_limit", "dropped", SIZE),
        Rule("GEN", "RMPCT", "generator_limit", "dropped", MADE),
        Rule("GEN", "PG", EVERY, "rewritten", DISPATCH),
        Rule("GEN", "QG", EVERY, "dropped", RESULTS),
        Rule("BUS", "VM VA", EVERY, "rewritten", STATE),
        Rule("BUS", "IDE", EVERY, "rewritten", "a bus that runs a unit is PV, any other PQ."),
        Rule("TRANSFORMER", "VMSTAR ANSTAR", EVERY, "dropped", STATE),
        Rule(
            "TRANSFORMER",
            "COD1 VMA1 VMI1 COD2 VMA2 VMI2 COD3 VMA3 VMI3",
            EVERY,
            "rewritten",
            f"kept if it controls a voltage; {_HELD}",
            some=True,
        ),
        Rule("AREA", "PDES PTOL", EVERY, "dropped", "an exchange is a sum of private loads."),
        Rule(
            "BUS LOAD BRANCH TRANSFORMER AREA VSCDC ZONE OWNER FACTS",
            "NAME VECGRP LOADTYPE",
            EVERY,
            "rewritten",
            "kept if it is a short label, else dropped: " + TEXT,
            some=True,
        ),
        Rule(
            "TWODC IMPCOR MSLINE SWSHUNT",
            "texts",
            EVERY,
            "rewritten",
            "kept if they are short labels, else dropped: " + TEXT,
        ),
        Rule("more", "titles comments", EVERY, "dropped", TEXT),
    ),
}
